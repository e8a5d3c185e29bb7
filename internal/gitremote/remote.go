// SPDX-License-Identifier: Apache-2.0

package gitremote

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-gitops/weir/internal/tenantnet"
)

// Schemes of a remote.
const (
	SchemeHTTPS = "https"
	SchemeHTTP  = "http"
	SchemeSSH   = "ssh"
)

// Form is a form of address that Parse takes only if it is asked to.
type Form int

// PlainHTTP takes http://, which anybody on the way can read and change: for a
// laptop.
const PlainHTTP Form = iota + 1

// defaultUser is who one is to a Git host. Git would take the name of the local
// user, which in a service is nobody's.
const defaultUser = "git"

// Remote is a parsed address. Only Parse makes them.
type Remote struct {
	scheme string
	user   string
	// host is in lower case and without brackets; an IP address in its one form.
	host string
	// port is 0 for the scheme's own.
	port uint16
	// path is decoded, with a slash at its beginning unless scp is set and it was
	// written without, and none at its end.
	path string
	// scp keeps host:path what it is: for a plain SSH server that path begins in
	// the user's home folder, and the one in ssh:// at the root.
	scp bool
}

// Parse takes an address apart. The error is an *Error and does not repeat the
// address, which may hold a password.
func Parse(repository string, also ...Form) (Remote, error) {
	const form = "write it as https://host/path, ssh://git@host/path or git@host:path"
	switch {
	case repository == "":
		return Remote{}, invalid("URL is empty", form)
	case len(repository) > 2048:
		return Remote{}, invalid("URL is longer than 2048 characters", form)
	case !utf8.ValidString(repository) || strings.ContainsFunc(repository, unprintable):
		return Remote{}, invalid("URL contains a space or a control character", form)
	case strings.HasPrefix(repository, "-"):
		return Remote{}, invalid(`URL begins with "-"`, form)
	case isHelper(repository):
		return Remote{}, invalid(`URL contains "::" and would run a command`, form)
	}
	if strings.Contains(repository, "://") {
		return parseURL(repository, also)
	}
	return parseSCP(repository)
}

func invalid(problem, remedy string) error {
	return &Error{Kind: ErrInvalidURL, Problem: problem, Remedy: remedy}
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) }

// isHelper finds <name>::<address>, which makes git run git-remote-<name>.
func isHelper(repository string) bool {
	name, _, found := strings.Cut(repository, "::")
	return found && !strings.ContainsAny(name, "/@[:")
}

func parseURL(repository string, also []Form) (Remote, error) {
	u, err := url.Parse(repository)
	if err != nil || u.Opaque != "" {
		// The parser's error repeats the URL.
		return Remote{}, invalid("URL is not a URL", "write it as https://host/path or ssh://git@host/path")
	}
	plain := slices.Contains(also, PlainHTTP)
	switch {
	case u.Scheme == SchemeHTTPS, u.Scheme == SchemeSSH, u.Scheme == SchemeHTTP && plain:
	case u.Scheme == SchemeHTTP:
		return Remote{}, invalid("URL uses http, which anybody on the way can change", "use https:// or ssh://")
	default:
		return Remote{}, invalid("URL does not begin with https:// or ssh://", "use one of the two")
	}
	if _, password := u.User.Password(); password || u.User != nil && u.Scheme != SchemeSSH {
		return Remote{}, invalid("URL carries credentials", "put them in a GitOpsDeploymentRepositoryCredential")
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return Remote{}, invalid("URL has a query or a fragment", "end it with the path")
	}
	// Decoded, an encoded slash could no longer be told from a written one.
	if strings.Contains(strings.ToLower(u.EscapedPath()), "%2f") {
		return Remote{}, invalid("URL has an encoded slash", "write slashes as they are")
	}
	r := Remote{scheme: u.Scheme, user: u.User.Username(), host: u.Hostname(), path: strings.TrimRight(u.Path, "/")}
	if port := u.Port(); port != "" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return Remote{}, invalid("URL has a port that is not a number between 1 and 65535", "leave it out, or correct it")
		}
		r.port = uint16(number)
	}
	return r.checked()
}

// parseSCP reads user@host:path. The user is required: without one, what forgot
// its https:// (localhost:8080/a) would pass for it.
func parseSCP(repository string) (Remote, error) {
	const form = "write it as https://host/path, ssh://git@host/path or git@host:path"
	user, rest, found := strings.Cut(repository, "@")
	if !found || strings.ContainsAny(user, "/:") {
		return Remote{}, invalid("URL does not begin with https:// or ssh://", form)
	}
	host, path, found := strings.Cut(rest, ":")
	if strings.HasPrefix(rest, "[") {
		host, path, found = strings.Cut(strings.TrimPrefix(rest, "["), "]:")
	}
	if !found || user == "" {
		return Remote{}, invalid("URL is not a host and a path", form)
	}
	return Remote{scheme: SchemeSSH, user: user, host: host, path: strings.TrimRight(path, "/"), scp: true}.checked()
}

// checked holds what is true of every form.
func (r Remote) checked() (Remote, error) {
	if tenantnet.CheckHost(r.host) != nil || strings.Contains(r.host, "%") {
		return Remote{}, invalid("URL has no host that is a name or an IP address", "write the host's DNS name")
	}
	r.host = strings.ToLower(strings.TrimSuffix(r.host, "."))
	if addr, err := netip.ParseAddr(r.host); err == nil {
		r.host = addr.String()
	}
	if r.scheme == SchemeSSH && r.user == "" {
		r.user = defaultUser
	}
	if r.user != "" && !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`).MatchString(r.user) {
		return Remote{}, invalid("URL has a user name with unusual characters", "use letters and digits")
	}
	if r.port == defaultPort(r.scheme) {
		r.port = 0
	}
	return r, checkPath(r.path)
}

func checkPath(path string) error {
	switch {
	case path == "" || path == "/":
		return invalid("URL has no path", "name the repository on the host")
	case strings.HasPrefix(path, "-"):
		return invalid(`URL has a path that begins with "-"`, "correct the path")
	case !utf8.ValidString(path) || strings.Contains(path, `\`) || strings.ContainsFunc(path, unicode.IsControl):
		return invalid("URL has a path with a backslash or a control character", "correct the path")
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return invalid(`URL has a path with "..", "." or an empty part`, "write the path in its simplest form")
		}
	}
	return nil
}

func defaultPort(scheme string) uint16 {
	return map[string]uint16{SchemeHTTPS: 443, SchemeHTTP: 80, SchemeSSH: 22}[scheme]
}

// Scheme is https, http or ssh.
func (r Remote) Scheme() string { return r.scheme }

// Host is the name or the IP address, in lower case.
func (r Remote) Host() string { return r.host }

// Address is host:port to connect to.
func (r Remote) Address() string {
	port := r.port
	if port == 0 {
		port = defaultPort(r.scheme)
	}
	return net.JoinHostPort(r.host, strconv.Itoa(int(port)))
}

// String is the canonical form: what Parse understood, and nothing else. Scheme
// and host are in lower case, there is no default port and no slash at the end;
// the path is otherwise as it was written, ".git" included, since some servers
// know it only so. Parsed again it is the same remote.
func (r Remote) String() string {
	if r.scp {
		return r.user + "@" + r.bracketed() + ":" + r.path
	}
	return r.url(r.path)
}

// Key is the same for two addresses of one repository. Beyond what String does,
// a ".git" at the end does not count, and host:path is the same as ssh://: on
// every Git host they are. Kept apart are http, https and ssh, since a credential
// for one is none for the other; users of SSH; and the case of paths, in which
// only some hosts are indulgent.
//
// On a plain SSH server two repositories may share a key (a and a.git, or a in
// the home folder and at the root). They are then on one host and under one user,
// so a credential that is chosen by key still reaches nobody else.
func (r Remote) Key() string {
	path := r.path
	if trimmed := strings.TrimSuffix(path, ".git"); trimmed != "" && !strings.HasSuffix(trimmed, "/") {
		path = trimmed
	}
	return r.url("/" + strings.TrimPrefix(path, "/"))
}

func (r Remote) url(path string) string {
	u := url.URL{Scheme: r.scheme, Host: r.bracketed(), Path: path}
	if r.port != 0 {
		u.Host += ":" + strconv.Itoa(int(r.port))
	}
	if r.user != "" {
		u.User = url.User(r.user)
	}
	return u.String()
}

func (r Remote) bracketed() string {
	if strings.Contains(r.host, ":") {
		return "[" + r.host + "]"
	}
	return r.host
}
