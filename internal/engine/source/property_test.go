// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRevisionsAreNames: what CheckRevision lets pass, git takes for the name of
// a branch.
func TestRevisionsAreNames(t *testing.T) {
	parts := rapid.SampledFrom([]string{"a", "B", "7", "/", ".", "..", "-", "@", "{", "}", "~", "^", ":", "?", "*", "[", "\\", " ", "\t", "\x7f", ".lock", "é", "_", "+", "="})
	rapid.Check(t, func(t *rapid.T) {
		revision := strings.Join(rapid.SliceOfN(parts, 1, 6).Draw(t, "parts"), "")
		if CheckRevision(revision) != nil {
			return
		}
		if err := exec.CommandContext(t.Context(), "git", "check-ref-format", "refs/heads/"+revision).Run(); err != nil {
			t.Fatalf("%q passes here, and git refuses it: %v", revision, err)
		}
	})
}

// TestWalkAndHash: walking a folder gives what is in it, and its id is the same
// for two trees exactly if that is.
func TestWalkAndHash(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "a-b", "a.b", "b", "A"})
	tree := rapid.Custom(func(t *rapid.T) map[string]string {
		files := map[string]string{}
		for range rapid.IntRange(1, 8).Draw(t, "files") {
			name := path.Join(rapid.SliceOfN(names, 1, 3).Draw(t, "path")...)
			clash := false
			for other := range files {
				clash = clash || strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/")
			}
			if !clash {
				files[name] = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "content")
			}
		}
		return files
	})
	below := func(files map[string]string, folder string) []string {
		var out []string
		for name, content := range files {
			if rest, ok := strings.CutPrefix(name, folder+"/"); ok || folder == "." {
				if folder == "." {
					rest = name
				}
				out = append(out, rest+"="+content)
			}
		}
		slices.Sort(out)
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		one, two := tree.Draw(t, "one"), tree.Draw(t, "two")
		a, b := FromFiles(one), FromFiles(two)
		for _, folder := range []string{".", "a", "a-b", "a/a", "b", "A/b"} {
			var walked []string
			for entry := range a.Walk(folder) {
				if entry.Kind != File {
					continue
				}
				content, err := a.ReadFile(t.Context(), entry.Path)
				if err != nil {
					t.Fatal(err)
				}
				walked = append(walked, strings.TrimPrefix(entry.Path, strings.TrimPrefix(folder+"/", "./"))+"="+string(content))
			}
			slices.Sort(walked)
			if want := below(one, folder); !slices.Equal(want, walked) && one[folder] == "" {
				t.Fatalf("%s of %v: walked %v, want %v", folder, one, walked, want)
			}
			hashA, errA := a.Hash(folder)
			hashB, errB := b.Hash(folder)
			if errA != nil || errB != nil {
				continue
			}
			if same := slices.Equal(below(one, folder), below(two, folder)); same != (hashA == hashB) {
				t.Fatalf("%s of %v and %v: same %v, ids %s, %s", folder, one, two, same, hashA, hashB)
			}
		}
	})
}
