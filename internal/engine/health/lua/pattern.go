// SPDX-License-Identifier: Apache-2.0

package lua

import (
	"bytes"

	lua "github.com/yuin/gopher-lua"
)

// matcher matches Lua's patterns: character classes, sets, the repetitions * + -
// ?, captures, %b and the anchors. It backtracks, so it can take exponentially
// long; each step is charged, and so is depth.
type matcher struct {
	l        *lua.LState
	left     *budget
	text     string
	pattern  string
	captures []capture
	depth    int
}

// capture is a part of the text; end is open while it is not closed.
type capture struct{ start, end int }

const (
	open     = -1
	position = -2

	maxCaptures = 32
	maxDepth    = 220
)

// match tries the pattern from p on at s, and gives the end or -1.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxDepth {
		m.l.RaiseError("pattern too complex")
	}
	defer func() { m.depth-- }()
	for p < len(m.pattern) {
		m.left.work(m.l, 1)
		switch m.pattern[p] {
		case '(':
			return m.openCapture(s, p)
		case ')':
			return m.closeCapture(s, p)
		case '$':
			if p+1 == len(m.pattern) {
				if s == len(m.text) {
					return s
				}
				return -1
			}
		case '%':
			if next, end, done := m.special(s, p); done {
				if end < 0 {
					return -1
				}
				s, p = end, next
				continue
			}
		}
		after := m.classEnd(p)
		if after < len(m.pattern) {
			switch m.pattern[after] {
			case '?':
				if s < len(m.text) && m.single(s, p, after) {
					if end := m.match(s+1, after+1); end >= 0 {
						return end
					}
				}
				p = after + 1
				continue
			case '*':
				return m.greedy(s, p, after, 0)
			case '+':
				return m.greedy(s, p, after, 1)
			case '-':
				return m.lazy(s, p, after)
			}
		}
		if s >= len(m.text) || !m.single(s, p, after) {
			return -1
		}
		s, p = s+1, after
	}
	return s
}

func (m *matcher) openCapture(s, p int) int {
	if len(m.captures) >= maxCaptures {
		m.l.RaiseError("too many captures")
	}
	c, next := capture{s, open}, p+1
	if next < len(m.pattern) && m.pattern[next] == ')' {
		c.end, next = position, next+1
	}
	m.captures = append(m.captures, c)
	end := m.match(s, next)
	if end < 0 {
		m.captures = m.captures[:len(m.captures)-1]
	}
	return end
}

func (m *matcher) closeCapture(s, p int) int {
	for i := len(m.captures) - 1; i >= 0; i-- {
		if m.captures[i].end != open {
			continue
		}
		m.captures[i].end = s
		end := m.match(s, p+1)
		if end < 0 {
			m.captures[i].end = open
		}
		return end
	}
	m.l.RaiseError("malformed pattern: no capture to close")
	return -1
}

// special is what % begins besides a class: a balanced pair or a capture again.
func (m *matcher) special(s, p int) (next, end int, done bool) {
	if p+1 >= len(m.pattern) {
		m.l.RaiseError("malformed pattern: ends with %%")
	}
	switch c := m.pattern[p+1]; {
	case c == 'b':
		if p+3 >= len(m.pattern) {
			m.l.RaiseError("malformed pattern: %%b needs two characters")
		}
		return p + 4, m.balanced(s, m.pattern[p+2], m.pattern[p+3]), true
	case c >= '1' && c <= '9':
		i := int(c - '1')
		if i >= len(m.captures) || m.captures[i].end < 0 {
			m.l.RaiseError("malformed pattern: no capture %d", i+1)
		}
		again := m.text[m.captures[i].start:m.captures[i].end]
		m.left.work(m.l, 1+len(again)/64)
		if len(m.text)-s < len(again) || m.text[s:s+len(again)] != again {
			return 0, -1, true
		}
		return p + 2, s + len(again), true
	default:
		return 0, 0, false
	}
}

func (m *matcher) balanced(s int, opening, closing byte) int {
	if s >= len(m.text) || m.text[s] != opening {
		return -1
	}
	depth := 0
	for i := s; i < len(m.text); i++ {
		m.left.work(m.l, 1)
		switch m.text[i] {
		case closing:
			if depth--; depth == 0 {
				return i + 1
			}
		case opening:
			depth++
		}
	}
	return -1
}

// greedy takes as many as there are, then gives back one after the other.
func (m *matcher) greedy(s, p, after, least int) int {
	count := 0
	for s+count < len(m.text) && m.single(s+count, p, after) {
		m.left.work(m.l, 1)
		count++
	}
	for ; count >= least; count-- {
		if end := m.match(s+count, after+1); end >= 0 {
			return end
		}
	}
	return -1
}

func (m *matcher) lazy(s, p, after int) int {
	for {
		if end := m.match(s, after+1); end >= 0 {
			return end
		}
		if s >= len(m.text) || !m.single(s, p, after) {
			return -1
		}
		s++
	}
}

// classEnd is where the single character class at p ends.
func (m *matcher) classEnd(p int) int {
	c := m.pattern[p]
	p++
	if c == '%' {
		if p >= len(m.pattern) {
			m.l.RaiseError("malformed pattern: ends with %%")
		}
		return p + 1
	}
	if c != '[' {
		return p
	}
	if p < len(m.pattern) && m.pattern[p] == '^' {
		p++
	}
	for first := true; ; first = false {
		if p >= len(m.pattern) {
			m.l.RaiseError("malformed pattern: a set is not closed")
		}
		c := m.pattern[p]
		p++
		if c == '%' {
			p++
		} else if c == ']' && !first {
			return p
		}
	}
}

// single says whether the character at s is in the class from p to after.
func (m *matcher) single(s, p, after int) bool {
	c := m.text[s]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pattern[p+1])
	case '[':
		m.left.work(m.l, 1+(after-p)/16)
		return inSet(c, m.pattern[p+1:after-1])
	default:
		return m.pattern[p] == c
	}
}

// inSet reads the inside of a set.
func inSet(c byte, set string) bool {
	negated := false
	if set != "" && set[0] == '^' {
		negated, set = true, set[1:]
	}
	for i := 0; i < len(set); i++ {
		switch {
		case set[i] == '%' && i+1 < len(set):
			i++
			if inClass(c, set[i]) {
				return !negated
			}
		case i+2 < len(set) && set[i+1] == '-':
			if set[i] <= c && c <= set[i+2] {
				return !negated
			}
			i += 2
		case set[i] == c:
			return !negated
		}
	}
	return negated
}

// inClass is a class such as %d; a capital is its opposite, and anything that is
// no letter of a class stands for itself.
func inClass(c, class byte) bool {
	lower := class | 0x20
	var in bool
	switch lower {
	case 'a':
		in = isLetter(c)
	case 'd':
		in = isDigit(c)
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = isLetter(c) || isDigit(c)
	case 's':
		in = c == ' ' || c >= '\t' && c <= '\r'
	case 'p':
		in = c > ' ' && c < 0x7f && !isLetter(c) && !isDigit(c)
	case 'c':
		in = c < ' ' || c == 0x7f
	case 'x':
		in = isDigit(c) || bytes.IndexByte([]byte("abcdefABCDEF"), c) >= 0
	default:
		return class == c
	}
	if !isLetter(class) {
		return class == c
	}
	return in == (class == lower)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
