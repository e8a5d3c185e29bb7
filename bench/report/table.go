// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// titles name the columns.
func titles() []string {
	return []string{"figure", "value", "floor", "ratio", "target", "met", "earlier"}
}

// rightAligned says which columns are numbers.
func rightAligned(i int) bool { return i >= 1 && i <= 3 }

// WriteTable prints the figures, a block for each scenario.
func WriteTable(w io.Writer, figures []Figure) error {
	rows := make([][]string, 0, len(figures))
	for _, f := range figures {
		rows = append(rows, row(f))
	}
	widths := make([]int, len(titles()))
	for i, title := range titles() {
		widths[i] = utf8.RuneCountInString(title)
		for _, r := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
	}
	var b strings.Builder
	writeRow(&b, titles(), widths)
	scenario := ""
	for i, f := range figures {
		if f.Scenario != scenario {
			scenario = f.Scenario
			fmt.Fprintf(&b, "\n%s\n", scenario)
		}
		writeRow(&b, rows[i], widths)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func row(f Figure) []string {
	cells := []string{"  " + f.Name, format(f.Value, f.Unit), "", "", "", "", f.Earlier}
	if f.Floor > 0 {
		cells[2], cells[3] = format(f.Floor, f.Unit), format(f.Ratio, UnitTimes)
	}
	if f.Target != nil {
		cells[4] = f.Target.text(f.Unit)
	}
	if f.Met != nil {
		cells[5] = map[bool]string{true: "yes", false: "MISSED"}[*f.Met]
	}
	return cells
}

func writeRow(b *strings.Builder, cells []string, widths []int) {
	var line strings.Builder
	for i, cell := range cells {
		fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if rightAligned(i) {
			line.WriteString(fill + cell)
		} else {
			line.WriteString(cell + fill)
		}
		line.WriteString("  ")
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// WriteDetails prints what the figures are made of, where that is known.
func WriteDetails(w io.Writer, figures []Figure) error {
	var b strings.Builder
	for _, f := range figures {
		if len(f.Detail) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s\n", f.Scenario, f.Name)
		for _, p := range f.Detail {
			fmt.Fprintf(&b, "  %12s  %s\n", format(p.Value, p.Unit), p.Name)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
