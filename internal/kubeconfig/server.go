// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

// serverURL gives the one form of an API server's URL: https, host in lower case,
// no default port, no trailing slash. It is rebuilt from its parts, so that
// nothing is in it that was not understood.
func serverURL(written string) (string, error) {
	refused := func(problem string) error {
		return refuse(v1alpha1.ReasonUnsupportedAPIURL, "spec.apiURL", problem, "write it as https://host:port")
	}
	if len(written) > 2048 || strings.ContainsFunc(written, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return "", refused("is too long, or contains a space or a control character")
	}
	u, err := url.Parse(written)
	if err != nil || u.Opaque != "" {
		return "", refused("is not a URL")
	}
	switch {
	case u.Scheme != "https":
		return "", refused("does not begin with https://")
	case u.User != nil:
		return "", refused("carries a user name or a password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", refused("has a query or a fragment")
	case strings.Contains(u.Path, "//") || strings.Contains("/"+u.Path+"/", "/../") || strings.Contains("/"+u.Path+"/", "/./"):
		return "", refused("has a path that is not in its simplest form")
	case tenantnet.CheckHost(u.Hostname()) != nil:
		return "", refused("has no host that is a name or an IP address")
	}
	host, err := hostPort(u)
	if err != nil {
		return "", refused("has a port that is not a number between 1 and 65535")
	}
	return (&url.URL{Scheme: "https", Host: host, Path: strings.TrimSuffix(u.Path, "/")}).String(), nil
}

func hostPort(u *url.URL) (string, error) {
	host := strings.ToLower(u.Hostname())
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.String()
	}
	port := uint64(443)
	if u.Port() != "" {
		var err error
		if port, err = strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return "", err
		}
		if port == 0 {
			return "", strconv.ErrRange
		}
	}
	switch {
	case port != 443:
		return net.JoinHostPort(host, strconv.FormatUint(port, 10)), nil
	case strings.Contains(host, ":"):
		return "[" + host + "]", nil
	}
	return host, nil
}
