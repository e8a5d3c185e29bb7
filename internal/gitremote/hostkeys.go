// SPDX-License-Identifier: Apache-2.0

package gitremote

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" // the format of hashed names in known_hosts; it hides names, it secures nothing
	"encoding/base64"
	"errors"
	"io"
	"net"
	"path"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// hostKeys is what is known about the keys of one host.
type hostKeys struct {
	any            bool
	known, revoked []ssh.PublicKey
	// seen is set once a key was accepted: what fails later is not the key.
	seen bool
	// problem is set where a key was refused.
	problem string
}

// hostKeys reads known_hosts for this remote. The library's own reader takes
// files only, and a tenant's text is not to become one; it is used for the lines
// and for the form of names. Lines for certificate authorities are passed over: a
// host that is known only through one counts as unknown.
func (r Remote) hostKeys(o Options) (*hostKeys, error) {
	if len(bytes.TrimSpace(o.KnownHosts)) == 0 {
		if !o.AcceptAnyHostKey {
			return nil, r.fail(ErrHostKey, "cannot be told from an impostor: no host keys are known", "ask the operator of this service to add the host's key to known_hosts", nil)
		}
		return &hostKeys{any: true}, nil
	}
	keys := &hostKeys{}
	name := knownhosts.Normalize(r.Address())
	for rest := o.KnownHosts; ; {
		marker, hosts, key, _, next, err := ssh.ParseKnownHosts(rest)
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return nil, r.fail(ErrHostKey, "cannot be checked: known_hosts has a line that cannot be read", "ask the operator of this service to correct it", err)
		}
		rest = next
		switch {
		case !names(hosts, name) || marker == "cert-authority":
		case marker == "revoked":
			keys.revoked = append(keys.revoked, key)
		default:
			keys.known = append(keys.known, key)
		}
	}
}

// names says whether one line of known_hosts is about a host. A pattern with "!"
// that matches takes the host out, whatever the others say.
func names(patterns []string, host string) bool {
	found := false
	for _, pattern := range patterns {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if !matches(pattern, host) {
			continue
		}
		if negated {
			return false
		}
		found = true
	}
	return found
}

func matches(pattern, host string) bool {
	if hashed, ok := strings.CutPrefix(pattern, "|1|"); ok {
		salt, sum, _ := strings.Cut(hashed, "|")
		saltBytes, err := base64.StdEncoding.DecodeString(salt)
		want, sumErr := base64.StdEncoding.DecodeString(sum)
		if err != nil || sumErr != nil {
			return false
		}
		mac := hmac.New(sha1.New, saltBytes)
		_, _ = io.WriteString(mac, host)
		return hmac.Equal(mac.Sum(nil), want)
	}
	// In the file brackets are part of names with ports; to the matcher they
	// would be a set of characters.
	escaped := strings.NewReplacer("[", `\[`, "]", `\]`).Replace(strings.ToLower(pattern))
	ok, err := path.Match(escaped, host)
	return ok && err == nil
}

// check is the callback of the handshake.
func (k *hostKeys) check(_ string, _ net.Addr, key ssh.PublicKey) error {
	is := func(other ssh.PublicKey) bool { return bytes.Equal(other.Marshal(), key.Marshal()) }
	switch {
	case slices.ContainsFunc(k.revoked, is):
		k.problem = "shows a host key that was revoked"
	case k.any || slices.ContainsFunc(k.known, is):
		k.seen = true
		return nil
	case len(k.known) == 0:
		k.problem = "shows a host key that is not known"
	default:
		k.problem = "shows another host key than the one that is known"
	}
	return ErrHostKey
}

// algorithms asks the server for a key of a kind that is known: of several it
// would otherwise show one that we cannot compare. Nil means any.
func (k *hostKeys) algorithms() []string {
	var out []string
	for _, key := range k.known {
		kinds := []string{key.Type()}
		if key.Type() == ssh.KeyAlgoRSA {
			kinds = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}
		for _, kind := range kinds {
			if !slices.Contains(out, kind) {
				out = append(out, kind)
			}
		}
	}
	return out
}
