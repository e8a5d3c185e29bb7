// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"unicode/utf8"
)

// page lays out what describe shows: a title, named facts, and sections.
type page struct{ out io.Writer }

// fact is a name and what there is to say under it.
type fact struct{ name, text string }

// facts prints those that say something, indented and aligned.
func (p *page) facts(all ...fact) {
	width := 0
	for _, f := range all {
		if f.text != "" {
			width = max(width, utf8.RuneCountInString(f.name))
		}
	}
	for _, f := range all {
		if f.text != "" {
			fmt.Fprintf(p.out, "  %-*s  %s\n", width, f.name, plain(f.text))
		}
	}
}

func (p *page) title(k *kind, name, namespace string) {
	fmt.Fprintf(p.out, "%s %s, in namespace %s\n", k.singular, name, namespace)
}

// section begins a part of the page.
func (p *page) section(format string, args ...any) {
	fmt.Fprintf(p.out, "\n%s\n", plain(fmt.Sprintf(format, args...)))
}

// line is one line of a section.
func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p.out, "  %s\n", plain(fmt.Sprintf(format, args...)))
}
