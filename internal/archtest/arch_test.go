// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// source is one parsed file of the repository.
type source struct {
	// path is relative to the repository, with slashes.
	path string
	text string
	set  *token.FileSet
	file *ast.File
}

// under says whether the file lies under one of the folders.
func (s *source) under(folders ...string) bool {
	for _, folder := range folders {
		if strings.HasPrefix(s.path, folder+"/") {
			return true
		}
	}
	return false
}

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s *source) isGenerated() bool { return ast.IsGenerated(s.file) }

// at points to a place in the file.
func (s *source) at(p token.Pos) string {
	return strings.TrimPrefix(s.set.Position(p).String(), "./")
}

func parse(path, text string) (*source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	return &source{path: path, text: text, set: set, file: file}, err
}

// readRepository parses all Go files.
func readRepository(t *testing.T) []*source {
	t.Helper()
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	skip := map[string]bool{".git": true, ".weir": true, ".cache": true, "bin": true, "testdata": true, "node_modules": true}
	var all []*source
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			// An editor's or a test's temporary file, gone since its folder was read.
			return nil
		}
		if err != nil {
			return err
		}
		if entry.IsDir() && skip[entry.Name()] {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(rel), string(text))
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("found only %d files", len(all))
	}
	return all
}

func TestRules(t *testing.T) {
	all := readRepository(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, fault := range r.check(all) {
				t.Errorf("%s\n\trule: %s", fault, r.reason)
			}
		})
	}
}

func TestRulesCanFail(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, example := range []struct {
				fixture
				faults int
			}{{r.violation, 1}, {r.accepted, 0}} {
				s, err := parse(example.path, example.text)
				if err != nil {
					t.Fatal(err)
				}
				if faults := r.check([]*source{s}); len(faults) != example.faults {
					t.Errorf("found %d faults %v, want %d, in %s:\n%s", len(faults), faults, example.faults, example.path, example.text)
				}
			}
		})
	}
}
