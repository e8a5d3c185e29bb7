// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// gap is the space between columns, as kubectl has it.
const gap = 3

// table prints rows in columns. Rows may come later, as under --watch: columns
// only ever grow, so what is on the screen stays readable.
type table struct {
	out     io.Writer
	indent  string
	headers []string
	widths  []int
	begun   bool
}

func newTable(out io.Writer, indent string, headers ...string) *table {
	t := &table{out: out, indent: indent, headers: headers, widths: make([]int, len(headers))}
	t.fit(headers)
	return t
}

func (t *table) fit(row []string) {
	for i, cell := range row {
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
	}
}

// print writes rows; the headers come before the first.
func (t *table) print(rows ...[]string) {
	for _, row := range rows {
		for i := range row {
			row[i] = plain(row[i])
		}
		t.fit(row)
	}
	if !t.begun {
		t.begun = true
		t.line(t.headers)
	}
	for _, row := range rows {
		t.line(row)
	}
}

func (t *table) line(row []string) {
	var b strings.Builder
	b.WriteString(t.indent)
	for i, cell := range row {
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+gap))
	}
	fmt.Fprintln(t.out, strings.TrimRight(b.String(), " "))
}
