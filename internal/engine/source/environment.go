// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

// origin is what a remote is called in git's configuration. The address stands
// there, in the environment, and not on the command line.
const origin = "origin"

// settings are git's configuration for one process.
type settings [][2]string

// environ writes settings in the form in which git takes them from the
// environment. They win over what is in the clone's own file.
func (s settings) environ() []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(s))}
	for i, setting := range s {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+setting[0], "GIT_CONFIG_VALUE_"+n+"="+setting[1])
	}
	return env
}

// always is configured for each process.
func always() settings {
	return settings{
		// Nothing of a repository is run.
		{"core.hooksPath", os.DevNull},
		{"core.fsmonitor", "false"},
		{"core.attributesFile", os.DevNull},
		{"submodule.recurse", "false"},
		// Nobody is asked.
		{"core.askPass", ""},
		{"credential.helper", ""},
		{"protocol.allow", "never"},
		// No work behind our back: a clone that has grown old is thrown away.
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		// A large object goes through a process in pieces. Without this one that
		// unpacks to half a gigabyte would be held in memory, once for each thread.
		{"core.bigFileThreshold", "1m"},
		{"core.deltaBaseCacheLimit", "16m"},
		{"pack.threads", "1"},
	}
}

// local is the environment of a process that reads a clone. It may use no
// protocol at all: should it miss an object, it cannot go and get it.
func (c *Cache) local(folder string) []string {
	return append(c.common(folder, c.home), append(always().environ(), "GIT_ALLOW_PROTOCOL=")...)
}

// common is the part that needs no configuration.
func (c *Cache) common(folder, home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + home,
		"TMPDIR=" + home,
		"LC_ALL=C",
		// Named, so that git does not look around for a repository.
		"GIT_DIR=" + folder,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_OPTIONAL_LOCKS=0",
	}
}

// remote gives the environment of a process that speaks to a server, and what
// removes the files that it needs.
func (c *Cache) remote(ctx context.Context, t target, folder string) (env []string, remove func(), err error) {
	addrs, err := c.options.Dialer.Addresses(ctx, t.remote.Host())
	if err != nil {
		return nil, nil, t.judgement(err)
	}
	home, err := os.MkdirTemp(c.private, "visit-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(home) }
	config := append(always(), settings{
		{"remote." + origin + ".url", t.remote.String()},
		// Allows objects to be missing, in this process only: see fetch.
		{"remote." + origin + ".promisor", "true"},
		{"remote." + origin + ".partialclonefilter", c.filter()},
		{"fetch.recurseSubmodules", "false"},
		{"transfer.bundleURI", "false"},
	}...)
	env = c.common(folder, home)
	if t.remote.Scheme() == gitremote.SchemeSSH {
		command, err := c.sshCommand(t, addrs[0], home)
		if err != nil {
			remove()
			return nil, nil, err
		}
		env = append(env, "GIT_SSH_COMMAND="+command, "GIT_SSH_VARIANT=ssh", "GIT_ALLOW_PROTOCOL=ssh")
	} else {
		config = append(config, c.web(t, addrs)...)
		env = append(env, "GIT_ALLOW_PROTOCOL="+t.remote.Scheme())
	}
	return append(env, config.environ()...), remove, nil
}

// web configures https, and http where that is allowed.
func (c *Cache) web(t target, addrs []netip.Addr) settings {
	config := settings{
		{"http.followRedirects", "false"},
		{"http.proxy", ""},
		{"http.sslVerify", "true"},
		{"http.sslVersion", "tlsv1.2"},
		{"http.emptyAuth", "false"},
		// A server that sends a byte now and then keeps us no longer than this.
		{"http.lowSpeedLimit", "100"},
		{"http.lowSpeedTime", "20"},
	}
	if c.options.CAFile != "" {
		config = append(config, [2]string{"http.sslCAInfo", c.options.CAFile})
	}
	// An address that is a number is not looked up by anybody.
	if _, err := netip.ParseAddr(t.remote.Host()); err != nil {
		config = append(config, [2]string{"http.curloptResolve", t.remote.Address() + ":" + joined(addrs)})
	}
	if user, password := t.credential.Username, t.credential.Password; user != "" || password != "" {
		basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		at := url.URL{Scheme: t.remote.Scheme(), Host: t.remote.Address(), Path: "/"}
		config = append(config, [2]string{"http." + at.String() + ".extraHeader", "Authorization: Basic " + basic})
	}
	return config
}

func joined(addrs []netip.Addr) string {
	texts := make([]string, len(addrs))
	for i, addr := range addrs {
		texts[i] = addr.String()
		if addr.Is6() {
			texts[i] = "[" + addr.String() + "]"
		}
	}
	return strings.Join(texts, ",")
}

// judgement puts an address that is not allowed, or that does not exist, into
// words.
func (t target) judgement(err error) error {
	kind, problem := gitremote.ErrUnreachable, "cannot be reached: "
	if errors.Is(err, tenantnet.ErrDenied) {
		kind, problem = gitremote.ErrDenied, "is not allowed: "
	}
	return &Error{Kind: kind, Remote: t.remote.String(), Problem: problem + err.Error(), cause: err}
}

// knownAs is how a host is called in known_hosts.
func knownAs(remote gitremote.Remote) string {
	host, port, err := net.SplitHostPort(remote.Address())
	if err != nil || port == "22" {
		return remote.Host()
	}
	return "[" + host + "]:" + port
}
