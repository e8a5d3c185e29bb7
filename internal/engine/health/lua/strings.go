// SPDX-License-Identifier: Apache-2.0

package lua

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func (lib *library) strings() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"byte": lib.byteAt, "char": lib.char, "find": lib.find, "format": lib.format, "gmatch": lib.gmatch, "gsub": lib.gsub,
		"len":   func(l *lua.LState) int { l.Push(lua.LNumber(len(l.CheckString(1)))); return 1 },
		"lower": lib.mapped(strings.ToLower), "upper": lib.mapped(strings.ToUpper), "reverse": lib.mapped(reversed),
		"match": lib.match, "rep": lib.rep, "sub": lib.sub,
	}
}

func (lib *library) mapped(change func(string) string) lua.LGFunction {
	return func(l *lua.LState) int {
		text := l.CheckString(1)
		// Some letters are longer in the other case.
		lib.left.make(l, 3*len(text))
		l.Push(lua.LString(change(text)))
		return 1
	}
}

func reversed(text string) string {
	out := []byte(text)
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return string(out)
}

func (lib *library) rep(l *lua.LState) int {
	text, n := l.CheckString(1), max(l.CheckInt(2), 0)
	if text == "" {
		n = 0
	}
	if n > 0 && n > lib.left.bytes/len(text) {
		lib.left.make(l, -1)
	}
	lib.left.make(l, n*len(text))
	l.Push(lua.LString(strings.Repeat(text, n)))
	return 1
}

// span turns Lua's positions, which count from one and from the end, into ours.
func span(length, from, to int) (start, end int) {
	if from < 0 {
		from = max(length+from+1, 1)
	}
	if to < 0 {
		to = length + to + 1
	}
	start, end = max(from, 1)-1, min(to, length)
	if start >= end {
		return 0, 0
	}
	return start, end
}

func (lib *library) sub(l *lua.LState) int {
	text := l.CheckString(1)
	start, end := span(len(text), l.CheckInt(2), l.OptInt(3, -1))
	l.Push(lua.LString(text[start:end]))
	return 1
}

func (lib *library) byteAt(l *lua.LState) int {
	text := l.CheckString(1)
	from := l.OptInt(2, 1)
	start, end := span(len(text), from, l.OptInt(3, from))
	lib.left.work(l, end-start)
	for i := start; i < end; i++ {
		l.Push(lua.LNumber(text[i]))
	}
	return end - start
}

func (lib *library) char(l *lua.LState) int {
	out := make([]byte, l.GetTop())
	for i := range out {
		n := l.CheckInt(i + 1)
		if n < 0 || n > 255 {
			l.ArgError(i+1, "invalid value")
		}
		out[i] = byte(n)
	}
	lib.left.make(l, len(out))
	l.Push(lua.LString(out))
	return 1
}

// maxWidth is what Lua itself allows in a format.
const maxWidth = 99

func (lib *library) format(l *lua.LState) int {
	format := l.CheckString(1)
	var out strings.Builder
	argument := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out.WriteByte(format[i])
			continue
		}
		if i+1 < len(format) && format[i+1] == '%' {
			out.WriteByte('%')
			i++
			continue
		}
		begin := i
		for i++; i < len(format) && strings.IndexByte("-+ #0123456789.", format[i]) >= 0; i++ {
		}
		if i >= len(format) || i-begin > 12 {
			l.RaiseError("invalid format")
		}
		argument++
		text := formatOne(l, format[begin:i], format[i], argument)
		lib.left.make(l, len(text))
		out.WriteString(text)
	}
	lib.left.make(l, len(format))
	l.Push(lua.LString(out.String()))
	return 1
}

// formatOne formats one argument. Go's verbs are Lua's, as far as they go.
func formatOne(l *lua.LState, flags string, verb byte, argument int) string {
	for _, number := range strings.FieldsFunc(flags, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(number); err != nil || n > maxWidth {
			l.RaiseError("invalid format: width or precision over %d", maxWidth)
		}
	}
	switch verb {
	case 'd', 'i':
		return fmt.Sprintf(flags+"d", int64(l.CheckNumber(argument)))
	case 'u', 'x', 'X', 'o', 'c':
		if verb == 'u' {
			verb = 'd'
		}
		return fmt.Sprintf(flags+string(verb), int64(l.CheckNumber(argument)))
	case 'e', 'E', 'f', 'g', 'G':
		return fmt.Sprintf(flags+string(verb), float64(l.CheckNumber(argument)))
	case 's':
		return fmt.Sprintf(flags+"s", l.CheckAny(argument).String())
	case 'q':
		return strconv.Quote(l.CheckString(argument))
	default:
		l.RaiseError("invalid format: no %%%c", verb)
		return ""
	}
}

// search looks for a pattern from a place on, and gives where it was found.
func (lib *library) search(l *lua.LState, text, pattern string, from int) (m *matcher, start, end int) {
	m = &matcher{l: l, left: lib.left, text: text, pattern: pattern}
	anchored := strings.HasPrefix(pattern, "^")
	if anchored {
		m.pattern = pattern[1:]
	}
	for start = from; start <= len(text); start++ {
		m.captures = m.captures[:0]
		if end = m.match(start, 0); end >= 0 {
			return m, start, end
		}
		if anchored {
			break
		}
	}
	return nil, -1, -1
}

// captured gives capture i, or the whole match where the pattern has none.
func (m *matcher) captured(i, start, end int) lua.LValue {
	if i >= len(m.captures) {
		return lua.LString(m.text[start:end])
	}
	switch c := m.captures[i]; c.end {
	case position:
		return lua.LNumber(c.start + 1)
	case open:
		m.l.RaiseError("malformed pattern: a capture is not closed")
		return lua.LNil
	default:
		return lua.LString(m.text[c.start:c.end])
	}
}

func (m *matcher) pushCaptures(start, end int, whole bool) int {
	count := len(m.captures)
	if count == 0 && whole {
		count = 1
	}
	for i := range count {
		m.l.Push(m.captured(i, start, end))
	}
	return count
}

// begin is the third argument of find and match.
func begin(l *lua.LState, length int) int {
	from := l.OptInt(3, 1)
	if from < 0 {
		from = max(length+from+1, 1)
	}
	return min(max(from, 1)-1, length+1)
}

func (lib *library) find(l *lua.LState) int {
	text, pattern := l.CheckString(1), l.CheckString(2)
	from := begin(l, len(text))
	if from > len(text) {
		l.Push(lua.LNil)
		return 1
	}
	if l.ToBool(4) || !strings.ContainsAny(pattern, "^$*+?.([%-") {
		lib.left.work(l, 1+len(text)/64)
		at := strings.Index(text[from:], pattern)
		if at < 0 {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(from + at + 1))
		l.Push(lua.LNumber(from + at + len(pattern)))
		return 2
	}
	m, start, end := lib.search(l, text, pattern, from)
	if m == nil {
		l.Push(lua.LNil)
		return 1
	}
	l.Push(lua.LNumber(start + 1))
	l.Push(lua.LNumber(end))
	return 2 + m.pushCaptures(start, end, false)
}

func (lib *library) match(l *lua.LState) int {
	text, pattern := l.CheckString(1), l.CheckString(2)
	m, start, end := lib.search(l, text, pattern, begin(l, len(text)))
	if m == nil {
		l.Push(lua.LNil)
		return 1
	}
	return m.pushCaptures(start, end, true)
}

func (lib *library) gmatch(l *lua.LState) int {
	text, pattern, from := l.CheckString(1), l.CheckString(2), 0
	l.Push(l.NewFunction(func(l *lua.LState) int {
		m, start, end := lib.search(l, text, pattern, from)
		if m == nil {
			from = len(text) + 1
			return 0
		}
		if from = end; end == start {
			from++
		}
		return m.pushCaptures(start, end, true)
	}))
	return 1
}

func (lib *library) gsub(l *lua.LState) int {
	text, pattern := l.CheckString(1), l.CheckString(2)
	limit := l.OptInt(4, len(text)+1)
	var out strings.Builder
	from, count := 0, 0
	write := func(part string) {
		lib.left.make(l, len(part))
		out.WriteString(part)
	}
	for count < limit {
		m, start, end := lib.search(l, text, pattern, from)
		if m == nil {
			break
		}
		count++
		write(text[from:start])
		write(lib.replacement(l, m, start, end))
		from = end
		if end == start {
			if start < len(text) {
				write(text[start : start+1])
			}
			from = start + 1
		}
		if from > len(text) || strings.HasPrefix(pattern, "^") {
			break
		}
	}
	if from < len(text) {
		write(text[from:])
	}
	l.Push(lua.LString(out.String()))
	l.Push(lua.LNumber(count))
	return 2
}

// replacement is what gsub puts in place of a match: text with references to
// captures, the entry of a table, or what a function returns.
func (lib *library) replacement(l *lua.LState, m *matcher, start, end int) string {
	var value lua.LValue
	switch with := l.Get(3).(type) {
	case *lua.LTable:
		value = with.RawGet(m.captured(0, start, end))
	case *lua.LFunction:
		l.Push(with)
		l.Call(m.pushCaptures(start, end, true), 1)
		value = l.Get(-1)
		l.Pop(1)
	default:
		return lib.expanded(l, m, l.CheckString(3), start, end)
	}
	switch {
	case lua.LVIsFalse(value):
		return m.text[start:end]
	case lua.LVCanConvToString(value):
		return lua.LVAsString(value)
	default:
		l.RaiseError("invalid replacement value (a %s)", value.Type())
		return ""
	}
}

func (lib *library) expanded(l *lua.LState, m *matcher, with string, start, end int) string {
	if !strings.Contains(with, "%") {
		return with
	}
	var out strings.Builder
	for i := 0; i < len(with); i++ {
		part := with[i : i+1]
		if with[i] == '%' && i+1 < len(with) {
			i++
			switch c := with[i]; {
			case c == '0':
				part = m.text[start:end]
			case c >= '1' && c <= '9':
				if n := int(c - '1'); n > 0 && n >= len(m.captures) {
					l.RaiseError("invalid capture index %d in replacement", n+1)
				}
				part = lua.LVAsString(m.captured(int(c-'1'), start, end))
			default:
				part = with[i : i+1]
			}
		}
		lib.left.make(l, len(part))
		out.WriteString(part)
	}
	return out.String()
}
