// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"fmt"
	"strings"
	"testing"
)

func TestManagedEnvironmentAPIURL(t *testing.T) {
	with := func(url any) change { return change{"spec.apiURL": url} }
	const field = "spec.apiURL"
	const (
		scheme      = "must begin with https://: give the address of the cluster's API server"
		credentials = "put them in the kubeconfig of the Secret that credentialsSecret names"
		host        = "must name a host after 'https://', such as api.cluster.example.com:6443"
		printable   = "percent-encode any other character"
		noQuery     = "give only scheme, host, port and path"
	)
	checkRules(t, environment, []rule{
		{name: "with port", change: with("https://api.cluster.example.com:6443")},
		{name: "without port", change: with("https://api.cluster.example.com")},
		{name: "with slash", change: with("https://api.cluster.example.com:6443/")},
		{name: "with path", change: with("https://clusters.example.com/k8s/c-1")},
		{name: "IPv4 address", change: with("https://192.0.2.1:6443")},
		{name: "IPv6 address", change: with("https://[2001:db8::1]:6443")},
		{name: "of the greatest length", change: with("https://api.example.com/" + strings.Repeat("a", 2024))},

		{name: "missing", change: with(nil), field: field, remedy: "Required value"},
		{name: "empty", change: with(""), field: field, remedy: scheme},
		{name: "too long", change: with("https://api.example.com/" + strings.Repeat("a", 2025)), field: field, remedy: "may not be more than 2048"},
		{name: "http", change: with("http://api.cluster.example.com:6443"), field: field, remedy: scheme},
		{name: "ssh", change: with("ssh://api.cluster.example.com"), field: field, remedy: scheme},
		{name: "file", change: with("file:///var/run/secrets"), field: field, remedy: scheme},
		{name: "unix socket", change: with("unix:///var/run/api.sock"), field: field, remedy: scheme},
		{name: "no scheme", change: with("api.cluster.example.com:6443"), field: field, remedy: scheme},
		{name: "upper-case scheme", change: with("HTTPS://api.cluster.example.com"), field: field, remedy: scheme},
		{name: "no host", change: with("https://"), field: field, remedy: host},
		{name: "no host but a port", change: with("https://:6443"), field: field, remedy: host},
		{name: "host begins with a dash", change: with("https://-api.example.com"), field: field, remedy: host},
		{name: "port not a number", change: with("https://api.example.com:api"), field: field, remedy: host},
		{name: "user and password", change: with("https://me:pa55word@api.example.com"), field: field, remedy: credentials},
		{name: "token as user", change: with("https://t0ken@api.example.com"), field: field, remedy: credentials},
		{name: "space", change: with("https://api.example.com/a b"), field: field, remedy: printable},
		{name: "newline", change: with("https://api.example.com\n"), field: field, remedy: printable},
		{name: "NUL", change: with("https://api.example.com/\x00"), field: field, remedy: printable},
		{name: "backslash", change: with(`https://api.example.com\@elsewhere.example.com`), field: field, remedy: printable},
		{name: "query", change: with("https://api.example.com/?a=b"), field: field, remedy: noQuery},
		{name: "query after the host", change: with("https://api.example.com?a=b"), field: field, remedy: noQuery},
		{name: "fragment", change: with("https://api.example.com/#a"), field: field, remedy: noQuery},
	})
}

func TestManagedEnvironmentCredentialsSecret(t *testing.T) {
	const remedy = "must be the name of a Secret in this namespace"
	checkRules(t, environment, required(subdomainRules("spec.credentialsSecret", remedy), remedy))
}

func TestManagedEnvironmentNamespaces(t *testing.T) {
	with := func(names ...any) change { return change{"spec.namespaces": names} }
	const field = "spec.namespaces"
	const remedy = "must hold names of namespaces: lower-case letters, digits and '-'"
	numbered := func(n int) []any {
		names := make([]any, n)
		for i := range names {
			names[i] = fmt.Sprintf("team-%d", i)
		}
		return names
	}
	checkRules(t, environment, []rule{
		{name: "none", change: with()},
		{name: "some", change: with("a", "b-2", strings.Repeat("c", 63))},
		{name: "as many as may be", change: with(numbered(100)...)},
		// The published API ignores it where namespaces is empty; so does Weir.
		{name: "cluster resources without namespaces", change: change{"spec.clusterResources": true}},
		{name: "cluster resources with namespaces", change: change{"spec.clusterResources": true, field: []any{"a"}}},

		{name: "too many", change: with(numbered(101)...), field: field, remedy: "must have at most 100 items"},
		{name: "twice the same", change: with("a", "b", "a"), field: field + "[2]", remedy: "Duplicate value"},
		{name: "too long", change: with("a", strings.Repeat("c", 64)), field: field + "[1]", remedy: "may not be more than 63"},
		{name: "empty text", change: with("a", ""), field: field + "[1]", remedy: remedy},
		{name: "upper case", change: with("A"), field: field + "[0]", remedy: remedy},
		{name: "wildcard", change: with("*"), field: field + "[0]", remedy: remedy},
		{name: "with a comma", change: with("a,b"), field: field + "[0]", remedy: remedy},
		{name: "with dots", change: with("a.b"), field: field + "[0]", remedy: remedy},
		{name: "trailing newline", change: with("a\n"), field: field + "[0]", remedy: remedy},
	})
}

func TestManagedEnvironmentSwitches(t *testing.T) {
	var rules []rule
	for _, name := range []string{"allowInsecureSkipTLSVerify", "createNewServiceAccount", "allowAutomatedDeployments", "clusterResources"} {
		field := "spec." + name
		rules = append(rules,
			rule{name: name + " true", change: change{field: true}},
			rule{name: name + " false", change: change{field: false}},
			rule{name: name + " text", change: change{field: "true"}, field: field, remedy: "must be of type boolean"},
		)
	}
	checkRules(t, environment, append(rules,
		rule{name: "no spec", change: change{"spec": nil}, field: "spec", remedy: "Required value"}))
}
