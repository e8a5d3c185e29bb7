// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// Options of Sanitise.
type Options struct {
	// Insecure is the environment's spec.allowInsecureSkipTLSVerify. It is the
	// only way to have no certificate checked.
	Insecure bool
}

// Sanitise takes from a kubeconfig what is needed to reach the cluster at apiURL.
// The error is an *Error.
func Sanitise(data []byte, apiURL string, o Options) (Access, error) {
	server, err := serverURL(apiURL)
	if err != nil {
		return Access{}, err
	}
	f, err := parse(data)
	if err != nil {
		return Access{}, err
	}
	chosen, err := f.choose(server)
	if err != nil {
		return Access{}, err
	}
	a := Access{Server: server, Insecure: o.Insecure}
	if err := a.takeCluster(chosen.cluster, f.clusters[chosen.cluster], o); err != nil {
		return Access{}, err
	}
	if err := a.takeUser(chosen.user, f.users[chosen.user]); err != nil {
		return Access{}, err
	}
	if err := a.validate(); err != nil {
		return Access{}, err
	}
	return a, nil
}

// choose finds the context. It looks at nothing but names and servers: a context
// whose user turns out to be of no use is not passed over for the next one, which
// may be another identity than the tenant thinks.
func (f *file) choose(server string) (pair, error) {
	const reason = v1alpha1.ReasonUnableToLocateContext
	matches := map[string]bool{}
	for name, cluster := range f.clusters {
		// A server that is no URL is not this one.
		written, err := text(cluster["server"], "")
		if err != nil {
			continue
		}
		if normal, err := serverURL(written); err == nil && normal == server {
			matches[name] = true
		}
	}
	if len(matches) == 0 {
		return pair{}, refuse(reason, "kubeconfig clusters", "has no cluster whose server is spec.apiURL", "make the two URLs the same")
	}
	candidates := slices.DeleteFunc(slices.Clone(f.contexts), func(p pair) bool { return !matches[p.cluster] })
	slices.SortFunc(candidates, func(a, b pair) int {
		if aCurrent, bCurrent := a.name == f.current, b.name == f.current; aCurrent != bCurrent {
			return map[bool]int{true: -1, false: 1}[aCurrent]
		}
		return cmp.Compare(a.name, b.name)
	})
	if len(candidates) == 0 {
		return pair{}, refuse(reason, "kubeconfig contexts", "has no context for the cluster whose server is spec.apiURL", "add a context that names that cluster and a user")
	}
	chosen := candidates[0]
	if _, exists := f.users[chosen.user]; !exists {
		return pair{}, refuse(reason, at("contexts", chosen.name, "context", "user"), "names no user of the kubeconfig", "add that user, or name another")
	}
	return chosen, nil
}

func (a *Access) takeCluster(name string, cluster fields, o Options) error {
	in := func(field string) string { return at("clusters", name, "cluster", field) }
	for _, field := range slices.Sorted(maps.Keys(cluster)) {
		if !isSet(cluster[field]) {
			continue
		}
		var err error
		switch field {
		case "server", "extensions", "disable-compression":
		case "tls-server-name":
			a.TLSServerName, err = text(cluster[field], in(field))
		case "certificate-authority-data":
			a.CAData, err = binary(cluster, field, in(field))
		case "certificate-authority":
			err = unusable(in(field), "names a file, which is not on this machine", "use certificate-authority-data")
		case "insecure-skip-tls-verify":
			if !o.Insecure {
				err = unusable(in(field), "has no effect here", "remove it, and set spec.allowInsecureSkipTLSVerify of the environment if that is what you want")
			}
		case "proxy-url":
			err = unusable(in(field), "is not supported", "use a cluster that can be reached without a proxy")
		default:
			err = unknown(in(label(field)))
		}
		if err != nil {
			return err
		}
	}
	if a.Insecure {
		// An authority that nothing is checked against would only look like safety.
		a.CAData = nil
	}
	return nil
}

func (a *Access) takeUser(name string, user fields) error {
	in := func(field string) string { return at("users", name, "user", field) }
	for _, field := range slices.Sorted(maps.Keys(user)) {
		if !isSet(user[field]) {
			continue
		}
		var err error
		switch field {
		case "extensions":
		case "token":
			a.Token, err = text(user[field], in(field))
		case "client-certificate-data":
			a.ClientCert, err = binary(user, field, in(field))
		case "client-key-data":
			a.ClientKey, err = binary(user, field, in(field))
		default:
			err = rejectedInUser(field, in)
		}
		if err != nil {
			return err
		}
	}
	if a.Token == "" && a.ClientCert == nil && a.ClientKey == nil {
		return unusable("kubeconfig users["+label(name)+"].user", "has no token and no client certificate", "add the token of a service account")
	}
	return nil
}

// rejectedInUser says, for each field that could do something, what to do
// instead.
func rejectedInUser(field string, in func(string) string) error {
	const token = "use the token of a service account"
	switch field {
	case "exec":
		return unusable(in(field), "names a command, and none is run here", token)
	case "auth-provider":
		return unusable(in(field), "is not supported", token)
	case "tokenFile":
		return unusable(in(field), "names a file, which is not on this machine", "use token")
	case "client-certificate":
		return unusable(in(field), "names a file, which is not on this machine", "use client-certificate-data")
	case "client-key":
		return unusable(in(field), "names a file, which is not on this machine", "use client-key-data")
	case "as", "as-uid", "as-groups", "as-user-extra":
		return unusable(in(field), "asks for impersonation, which is not supported", "use the token of the service account that is meant")
	case "username", "password":
		return unusable(in(field), "is basic authentication, which Kubernetes does not have", token)
	}
	return unknown(in(label(field)))
}

func unknown(path string) error {
	return unusable(path, "is not a field that is understood here", "remove it")
}

func binary(from fields, field, path string) ([]byte, error) {
	encoded, err := text(from[field], path)
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, unparsable(path, "is not base64", "copy it from a working kubeconfig")
	}
	return data, nil
}
