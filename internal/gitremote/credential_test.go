// SPDX-License-Identifier: Apache-2.0

package gitremote_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/internal/gitremote"
)

func TestCredentialShowsNoSecrets(t *testing.T) {
	c := gitremote.Credential{Username: canary, Password: canary, SSHPrivateKey: canary}
	var logged bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		slog.New(handler).Info("a", "credential", c, "pointer", &c, "inside", struct{ C gitremote.Credential }{c})
	}
	marshalled, err := json.Marshal([]any{c, &c})
	if err != nil {
		t.Fatal(err)
	}
	shown := logged.String() + string(marshalled)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown += fmt.Sprintf(verb+verb+verb, c, &c, struct{ C gitremote.Credential }{c})
	}
	for _, secret := range []string{canary, fmt.Sprintf("%x", canary)} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is shown in %s", secret, shown)
		}
	}
	for want, c := range map[string]gitremote.Credential{
		"credential (none)":              {},
		"credential (password)":          {Password: canary},
		"credential (SSH key)":           {SSHPrivateKey: canary},
		"credential (password, SSH key)": {Username: canary, SSHPrivateKey: canary},
	} {
		if c.String() != want {
			t.Errorf("got %q, want %q", c, want)
		}
	}
}
