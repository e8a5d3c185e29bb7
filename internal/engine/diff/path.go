// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"strings"
)

// path is where a walk is, from the inside out. It is written as text only when
// there is something to report.
type path struct {
	parent *path
	// field is the name of a map's entry; element is that of a list, if field is empty.
	field, element string
}

func (p *path) at(field string) *path { return &path{parent: p, field: field} }

func (p *path) elem(text string) *path { return &path{parent: p, element: text} }

// name is the field that a value belongs to: that of the list for an element.
func (p *path) name() string {
	for ; p != nil; p = p.parent {
		if p.field != "" {
			return p.field
		}
	}
	return ""
}

// outer is the field around the one that name gives.
func (p *path) outer() string {
	for ; p != nil; p = p.parent {
		if p.field != "" {
			return p.parent.name()
		}
	}
	return ""
}

// root is the first field.
func (p *path) root() string {
	first := ""
	for ; p != nil; p = p.parent {
		if p.field != "" {
			first = p.field
		}
	}
	return first
}

func (p *path) String() string {
	if p == nil {
		return ""
	}
	before := p.parent.String()
	switch {
	case p.field == "":
		return before + "[" + p.element + "]"
	case strings.ContainsAny(p.field, "./[]\" "):
		return before + fmt.Sprintf("[%q]", p.field)
	case before == "":
		return p.field
	default:
		return before + "." + p.field
	}
}
