// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"strings"
	"testing"
)

// A refusal is shown on terminals and kept in logs, so it must not repeat the
// password that it complains of, whatever else is wrong with the URL.
func TestRefusalsHidePasswords(t *testing.T) {
	fields := map[string]template{
		"spec.source.repoURL": deployment,
		"spec.apiURL":         environment,
		"spec.repository":     credential,
	}
	for _, url := range []string{
		"https://me:pa55word@git.example.com/app",
		"https://me:pa55word@-git.example.com/app",
		"https://me:pa55word@git.example.com/an app",
		"https://me:pa55word?@git.example.com/app",
		"https://pa55word@git.example.com/app",
		"http://me:pa55word@git.example.com/app",
		"ssh://me:pa55word@git.example.com/app",
		"ftp://me:pa55word@git.example.com/app",
		"me:pa55word@git.example.com:app",
		"https://me:pa55word@git.example.com/" + strings.Repeat("a", 3000),
	} {
		for field, good := range fields {
			t.Run(field+" "+url[:min(len(url), 60)], func(t *testing.T) {
				u := good(t, change{field: url})
				u.SetNamespace(namespace(t))
				err := server.client.Create(t.Context(), u)
				if err == nil {
					t.Fatal("accepted")
				}
				if !strings.Contains(err.Error(), field) {
					t.Errorf("the refusal does not name %s: %v", field, err)
				}
				if strings.Contains(err.Error(), "pa55word") {
					t.Errorf("the refusal repeats the password: %v", err)
				}
			})
		}
	}
}
