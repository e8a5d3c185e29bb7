// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// rule is one rule of the project. check gives what breaks it.
type rule struct {
	name   string
	reason string
	check  func([]*source) []string
	// violation is found fault with once, accepted not at all.
	violation, accepted fixture
}

type fixture struct{ path, text string }

const licence = "// SPDX-License-Identifier: Apache-2.0\n\n"

var rules = []rule{
	{
		name:      "licence",
		reason:    "every file says its licence in its first line",
		check:     eachFile(licenceLine),
		violation: fixture{"a/a.go", "// Package a is a.\npackage a\n"},
		accepted:  fixture{"a/a.go", licence + "// Package a is a.\npackage a\n"},
	},
	{
		name:      "package documentation",
		reason:    "every package says what it is and how it works before its code does",
		check:     packageDocs,
		violation: fixture{"internal/a/a.go", licence + "package a\n"},
		accepted:  fixture{"internal/a/a.go", licence + "// Package a is a.\npackage a\n"},
	},
	{
		name:      "telling names",
		reason:    "a package is named after what it does; util, common, shared and helpers say nothing and collect everything",
		check:     eachFile(tellingName),
		violation: fixture{"internal/a/utils/a.go", "package utils"},
		accepted:  fixture{"internal/a/outbox/a.go", "package outbox"},
	},
	{
		name:      "one writer of tenant status",
		reason:    "only internal/backend/project writes the status that tenants see, so that there is one place to look for every word of it",
		check:     eachFile(statusWrites),
		violation: fixture{"internal/agent/a.go", "package agent\nfunc f() { c.Status().Patch(ctx, cr, patch) }"},
		accepted:  fixture{"internal/backend/project/a.go", "package project\nfunc f() { c.Status().Patch(ctx, cr, patch) }"},
	},
	{
		name:      "one writer of tenant status, by its type",
		reason:    "who holds a status writer can write status; only internal/backend/project does",
		check:     eachFile(statusWriters),
		violation: fixture{"internal/agent/a.go", "package agent\ntype t struct { w client.SubResourceWriter }"},
		accepted:  fixture{"internal/backend/project/a.go", "package project\ntype t struct { w client.SubResourceWriter }"},
	},
	{
		name:      "one place for SQL",
		reason:    "nothing outside internal/store contains SQL",
		check:     eachFile(sqlText),
		violation: fixture{"internal/agent/a.go", "package agent\nconst q = `\n\tselect id FROM application`"},
		accepted:  fixture{"internal/agent/a.go", "package agent\nconst q = `select one, or update both`"},
	},
	{
		name:      "errors are not matched by their text",
		reason:    "texts are for people and change; use errors.Is and errors.As",
		check:     eachFile(matchedTexts),
		violation: fixture{"internal/agent/a.go", "package agent\nfunc f() bool { return strings.Contains(err.Error(), \"refused\") }"},
		accepted:  fixture{"internal/agent/a_test.go", "package agent\nfunc f() bool { return strings.Contains(err.Error(), \"refused\") }"},
	},
	{
		name:      "tests do not sleep",
		reason:    "wait for a signal or poll with a deadline; only under the fake clock of testing/synctest does sleeping take no time and miss nothing",
		check:     eachFile(sleeps),
		violation: fixture{"internal/a/a_test.go", "package a\nfunc f() { time.Sleep(1) }"},
		accepted:  fixture{"internal/a/a_test.go", "package a\nimport \"testing/synctest\"\nfunc f() { time.Sleep(1) }"},
	},
	{
		name:      "one subject a file",
		reason:    fmt.Sprintf("a file of more than %d lines has two subjects", maxLines),
		check:     eachFile(length),
		violation: fixture{"a/a.go", "package a\n" + strings.Repeat("// more\n", maxLines)},
		accepted:  fixture{"a/a.go", "package a\n" + strings.Repeat("// more\n", maxLines-1)},
	},
}

const maxLines = 500

func eachFile(check func(*source) []string) func([]*source) []string {
	return func(all []*source) []string {
		var faults []string
		for _, s := range all {
			faults = append(faults, check(s)...)
		}
		return faults
	}
}

func licenceLine(s *source) []string {
	// What is generated begins with a build constraint.
	if strings.HasPrefix(s.text, licence) || s.isGenerated() && strings.Contains(s.text, licence) {
		return nil
	}
	return []string{s.path + ": does not begin with the licence line and an empty line"}
}

// packageDocs looks for one documented file in each package; tests document
// nothing.
func packageDocs(all []*source) []string {
	documented := map[string]bool{}
	for _, s := range all {
		if s.isTest() {
			continue
		}
		folder := path.Dir(s.path)
		documented[folder] = documented[folder] || isPackageDoc(s.file)
	}
	var faults []string
	for folder, ok := range documented {
		if !ok {
			faults = append(faults, folder+": no file documents the package")
		}
	}
	slices.Sort(faults)
	return faults
}

func isPackageDoc(f *ast.File) bool {
	text := f.Doc.Text()
	return strings.HasPrefix(text, "Package "+f.Name.Name+" ") || f.Name.Name == "main" && strings.HasPrefix(text, "Command ")
}

var empty = regexp.MustCompile(`^(utils?|utilities|common|commons|shared|helpers?|misc|lib)(_test)?$`)

func tellingName(s *source) []string {
	for _, name := range append(strings.Split(path.Dir(s.path), "/"), s.file.Name.Name) {
		if empty.MatchString(name) {
			return []string{fmt.Sprintf("%s: %q is no name", s.path, name)}
		}
	}
	return nil
}

// mayWriteStatus is where tenant status is written: by the one writer, and by
// tests and benchmarks that play the part of others.
func mayWriteStatus(s *source) bool {
	return s.isTest() || s.under("internal/backend/project", "internal/testkit", "bench", "e2e", "localkube")
}

// statusWrites finds x.Status().Patch(…) and x.SubResource("status").Patch(…).
func statusWrites(s *source) []string {
	if mayWriteStatus(s) {
		return nil
	}
	var faults []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		write, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Create", "Update", "Patch", "Apply"}, write.Sel.Name) {
			return true
		}
		if call, ok := write.X.(*ast.CallExpr); ok && slices.Contains([]string{"Status", "SubResource"}, called(call)) {
			faults = append(faults, s.at(n.Pos())+": writes a status")
		}
		return true
	})
	return faults
}

// called is the name of the method or function that is called.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

func statusWriters(s *source) []string {
	if mayWriteStatus(s) {
		return nil
	}
	var faults []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if t, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"SubResourceWriter", "StatusWriter", "SubResourceClient", "StatusClient"}, t.Sel.Name) {
			faults = append(faults, s.at(n.Pos())+": holds a status writer")
		}
		return true
	})
	return faults
}

var statement = regexp.MustCompile(`(?is)^\s*(select\s.+\sfrom\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|(create|alter|drop)\s+(table|index|trigger|database|role)\s)`)

// sqlText finds strings that are statements. Tests may look into the database,
// and the test kit and the benchmark make and measure some.
func sqlText(s *source) []string {
	if s.isTest() || s.under("internal/store", "internal/testkit", "bench") {
		return nil
	}
	var faults []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && statement.MatchString(strings.Trim(text.Value, "`\"")) {
			faults = append(faults, s.at(n.Pos())+": contains SQL")
		}
		return true
	})
	return faults
}

// matchedTexts finds comparisons of err.Error(). Tests may: what a message says
// is what they test.
func matchedTexts(s *source) []string {
	if s.isTest() {
		return nil
	}
	var faults []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		var operands []ast.Expr
		switch x := n.(type) {
		case *ast.CallExpr:
			if slices.Contains([]string{"Contains", "HasPrefix", "HasSuffix", "EqualFold", "MatchString", "Index"}, called(x)) {
				operands = x.Args
			}
		case *ast.BinaryExpr:
			if x.Op == token.EQL || x.Op == token.NEQ {
				operands = []ast.Expr{x.X, x.Y}
			}
		}
		for _, operand := range operands {
			if call, ok := operand.(*ast.CallExpr); ok && called(call) == "Error" && len(call.Args) == 0 {
				faults = append(faults, s.at(n.Pos())+": compares an error's text")
			}
		}
		return true
	})
	return faults
}

// sleeps finds sleeping tests, file by file: one that uses the fake clock is
// taken to use it throughout.
func sleeps(s *source) []string {
	if !s.isTest() && !s.under("internal/testkit", "internal/store/storetest") {
		return nil
	}
	for _, i := range s.file.Imports {
		if i.Path.Value == `"testing/synctest"` {
			return nil
		}
	}
	var faults []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && called(call) == "Sleep" {
			faults = append(faults, s.at(n.Pos())+": sleeps")
		}
		return true
	})
	return faults
}

func length(s *source) []string {
	if lines := strings.Count(s.text, "\n"); lines > maxLines && !s.isGenerated() {
		return []string{fmt.Sprintf("%s: %d lines", s.path, lines)}
	}
	return nil
}
