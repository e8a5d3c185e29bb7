// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"encoding/json"
	"errors"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// maxBytes of a kubeconfig. A Secret holds no more either.
const maxBytes = 1 << 20

// file is a kubeconfig as far as it is needed to choose. What is in a cluster or
// a user stays unread until it is chosen.
type file struct {
	clusters, users entries
	contexts        []pair
	current         string
}

type (
	fields  map[string]json.RawMessage
	entries map[string]fields
	// pair is a context.
	pair struct{ name, cluster, user string }
)

// parse reads the outline. Keys are compared as they are written: a parser that
// took "Exec" for "exec" and one that does not would disagree about what is there.
func parse(data []byte) (*file, error) {
	const form = "put the content of a kubeconfig file there, as kubectl config view --raw --minify prints it"
	if len(data) > maxBytes {
		return nil, unparsable("kubeconfig", "is larger than 1 MiB", "keep only the cluster, the user and the context for this environment")
	}
	text, err := toJSON(data)
	if errors.Is(err, errAlias) {
		return nil, unparsable("kubeconfig", "uses YAML aliases (*name), which are not supported", "write the values out")
	}
	if errors.Is(err, errWide) {
		return nil, unparsable("kubeconfig", "has a mapping with more than 256 keys", form)
	}
	if err != nil {
		return nil, unparsable("kubeconfig", "is not valid YAML, or has the same key twice", form)
	}
	var outline fields
	if utiljson.Unmarshal(text, &outline) != nil || len(outline) == 0 {
		return nil, unparsable("kubeconfig", "is not a kubeconfig", form)
	}
	f := &file{}
	if isSet(outline["current-context"]) && utiljson.Unmarshal(outline["current-context"], &f.current) != nil {
		return nil, unparsable("kubeconfig current-context", "is not a text", "name a context")
	}
	if f.clusters, err = list(outline, "clusters", "cluster"); err != nil {
		return nil, err
	}
	if f.users, err = list(outline, "users", "user"); err != nil {
		return nil, err
	}
	f.contexts, err = contexts(outline)
	return f, err
}

// list reads one of the lists of named entries.
func list(outline fields, name, entry string) (entries, error) {
	var items []fields
	if isSet(outline[name]) && utiljson.Unmarshal(outline[name], &items) != nil {
		return nil, unparsable("kubeconfig "+name, "is not a list of entries", "write - name: … and "+entry+": … for each")
	}
	out := entries{}
	for _, item := range items {
		var key string
		var body fields
		if utiljson.Unmarshal(item["name"], &key) != nil || key == "" {
			return nil, unparsable("kubeconfig "+name, "has an entry without a name", "write - name: … and "+entry+": … for each")
		}
		if isSet(item[entry]) && utiljson.Unmarshal(item[entry], &body) != nil {
			return nil, unparsable("kubeconfig "+name+"["+label(key)+"]."+entry, "is not a mapping", "write its fields below it")
		}
		if _, twice := out[key]; twice {
			return nil, unparsable("kubeconfig "+name, "has two entries named "+label(key), "keep one of them")
		}
		out[key] = body
	}
	return out, nil
}

func contexts(outline fields) ([]pair, error) {
	named, err := list(outline, "contexts", "context")
	if err != nil {
		return nil, err
	}
	var out []pair
	for name, body := range named {
		p := pair{name: name}
		if p.cluster, err = text(body["cluster"], at("contexts", name, "context", "cluster")); err != nil {
			return nil, err
		}
		if p.user, err = text(body["user"], at("contexts", name, "context", "user")); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// text reads a field that is a text, or absent.
func text(raw json.RawMessage, field string) (string, error) {
	var s string
	if raw != nil && utiljson.Unmarshal(raw, &s) != nil {
		return "", unparsable(field, "is not a text", "write it in quotes")
	}
	return s, nil
}

// isSet says whether a field has a value that could have an effect.
func isSet(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", `""`, "false", "[]", "{}":
		return false
	}
	return true
}
