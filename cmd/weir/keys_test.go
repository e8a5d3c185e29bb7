// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store/sqlite"
)

// runKeys runs `weir keys …` and gives what it printed.
func runKeys(t *testing.T, args ...string) (string, error) {
	t.Helper()
	for _, name := range []string{"WEIR_KEY_RING", "WEIR_KEY_RING_SECRET", "WEIR_DATABASE"} {
		t.Setenv(name, "")
	}
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"keys"}, args...))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func mustRunKeys(t *testing.T, args ...string) string {
	t.Helper()
	out, err := runKeys(t, args...)
	if err != nil {
		t.Fatalf("weir keys %v: %v\n%s", args, err, out)
	}
	return out
}

// sealOne seals a value for a tenant, as a role would.
func sealOne(t *testing.T, ring, file string) {
	t.Helper()
	db, err := sqlite.OpenAndMigrate(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openSealer(t.Context(), keyRingFlags{file: ring}, nil, db)
	if err == nil {
		_, err = s.Seal(t.Context(), seal.Place{Tenant: "alice", Table: "t", Row: "r", Column: "c"}, []byte("value"))
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestKeysFromCreationToPruning(t *testing.T) {
	folder := t.TempDir()
	ring, file := filepath.Join(folder, "ring.json"), filepath.Join(folder, "weir.db")
	where := []string{"--key-ring", ring, "--database", "sqlite:" + file}
	command := func(args ...string) []string { return append(args, where...) }

	printed := mustRunKeys(t, "create", "--key-ring", ring)
	first := regexp.MustCompile(`primary key ([0-9a-f]{8})`).FindStringSubmatch(printed)
	if first == nil || !strings.Contains(printed, "backup") {
		t.Fatalf("create printed %q", printed)
	}
	sealOne(t, ring, file)

	rows := func(text string) [][]string {
		var all [][]string
		for line := range strings.Lines(text) {
			all = append(all, strings.Fields(line))
		}
		return all
	}
	show := mustRunKeys(t, command("show")...)
	if got := rows(show); len(got) != 2 || got[1][0] != first[1] || got[1][1] != "primary" || got[1][2] != "1" {
		t.Errorf("show printed %q", show)
	}
	if uncounted := mustRunKeys(t, "show", "--key-ring", ring); !strings.Contains(uncounted, "not counted") {
		t.Errorf("show without a database printed %q", uncounted)
	}

	rotated := mustRunKeys(t, command("rotate")...)
	show = mustRunKeys(t, command("show")...)
	got := rows(show)
	if len(got) != 3 || got[1][1] != "primary" || got[1][2] != "1" || got[2][0] != first[1] || got[2][1] != "older" || got[2][2] != "0" {
		t.Errorf("after a rotation, show printed %q", show)
	}
	if second := got[1][0]; !strings.Contains(rotated, "now "+second) || !strings.Contains(rotated, "1 of 1 data keys") {
		t.Errorf("rotate printed %q", rotated)
	}
	pruned := mustRunKeys(t, command("rotate", "--prune")...)
	if !strings.Contains(pruned, "Dropped key "+first[1]) {
		t.Errorf("rotate --prune printed %q", pruned)
	}
	show = mustRunKeys(t, command("show")...)
	if len(rows(show)) != 2 {
		t.Errorf("after pruning, show printed %q", show)
	}
	wantNoKeyMaterial(t, ring, printed+show+rotated+pruned)

	// Another ring: show says what is missing, with the ids.
	other := filepath.Join(folder, "other.json")
	mustRunKeys(t, "create", "--key-ring", other)
	missing, err := runKeys(t, "show", "--key-ring", other, "--database", "sqlite:"+file)
	if err == nil || !strings.Contains(missing, "MISSING") || !strings.Contains(err.Error(), rows(show)[1][0]) {
		t.Errorf("show with another ring printed %q, %v", missing, err)
	}
}

func wantNoKeyMaterial(t *testing.T, ring, printed string) {
	t.Helper()
	text, err := os.ReadFile(ring)
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Key []struct {
			KeyData struct{ Value string } `json:"keyData"`
		} `json:"key"`
	}
	if err := json.Unmarshal(text, &parsed); err != nil || len(parsed.Key) == 0 {
		t.Fatalf("the ring has no keys: %v", err)
	}
	for _, k := range parsed.Key {
		if strings.Contains(printed, k.KeyData.Value) || strings.Contains(printed, "keyData") {
			t.Error("a key was printed")
		}
	}
}

func TestKeysErrorsSayWhatToDo(t *testing.T) {
	folder := t.TempDir()
	ring := filepath.Join(folder, "ring.json")
	mustRunKeys(t, "create", "--key-ring", ring)
	exposed := filepath.Join(folder, "exposed.json")
	mustRunKeys(t, "create", "--key-ring", exposed)
	if err := os.Chmod(exposed, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		args  []string
		words []string
	}{
		{"no ring named", []string{"show"}, []string{"--key-ring FILE", "--key-ring-secret NAMESPACE/NAME", "WEIR_KEY_RING"}},
		{"two rings named", []string{"show", "--key-ring", ring, "--key-ring-secret", "a/b"}, []string{"not both", ring, "a/b"}},
		{"a Secret without a namespace", []string{"create", "--key-ring-secret", "name"}, []string{`"name"`, "NAMESPACE/NAME"}},
		{"a Secret with too much", []string{"create", "--key-ring-secret", "a/b/c"}, []string{"NAMESPACE/NAME"}},
		{"a ring that is there", []string{"create", "--key-ring", ring}, []string{"already", ring}},
		{"a ring that is not there", []string{"show", "--key-ring", ring + "x"}, []string{"weir keys create --key-ring " + ring + "x"}},
		{"a ring that others can read", []string{"show", "--key-ring", exposed}, []string{"chmod 600 " + exposed, "0644"}},
		{"no database", []string{"rotate", "--key-ring", ring}, []string{"--database", "WEIR_DATABASE"}},
	} {
		out, err := runKeys(t, c.args...)
		if err == nil {
			t.Errorf("%s: succeeded: %s", c.name, out)
			continue
		}
		for _, words := range c.words {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %q does not say %q", c.name, err, words)
			}
		}
	}
	if _, err := openSealer(t.Context(), keyRingFlags{file: ring + "x"}, nil, nil); !errors.Is(err, seal.ErrNoRing) {
		t.Errorf("a role without a ring: %v, want %v", err, seal.ErrNoRing)
	}
}
