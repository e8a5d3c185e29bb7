// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A control whose test has been renamed or removed is a control without a test:
// every test that docs/security.md names exists.
func TestTheTestsThatTheSecurityPageNamesExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 15 {
		t.Fatalf("the page names %d tests; it is not read rightly", len(named))
	}
	var all strings.Builder
	err = filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range named {
		if !strings.Contains(all.String(), "func "+name[1]+"(") {
			t.Errorf("docs/security.md names %s, and there is no such test", name[1])
		}
	}
}
