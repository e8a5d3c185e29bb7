// SPDX-License-Identifier: Apache-2.0

package lua

import (
	"math"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// library is the functions of one run.
type library struct{ left *budget }

func openLibraries(l *lua.LState, left *budget) {
	lib := &library{left}
	open := func(name string, f lua.LGFunction) {
		l.Push(l.NewFunction(f))
		l.Push(lua.LString(name))
		l.Call(1, 0)
	}
	open(lua.BaseLibName, lua.OpenBase)
	keep(l, l.G.Global, "_G", "assert", "error", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget",
		"select", "tonumber", "tostring", "type", "unpack")
	lib.boundErrors(l)
	open(lua.MathLibName, lua.OpenMath)
	numbers, _ := l.GetGlobal("math").(*lua.LTable)
	numbers.RawSetString("random", lua.LNil)
	numbers.RawSetString("randomseed", lua.LNil)
	open(lua.OsLibName, lua.OpenOs)
	clock, _ := l.GetGlobal("os").(*lua.LTable)
	keep(l, clock, "time", "date", "difftime")
	lib.boundDate(l, clock)

	l.SetGlobal("table", l.SetFuncs(l.NewTable(), map[string]lua.LGFunction{
		"concat": lib.tableConcat, "insert": lib.insert, "remove": lib.remove, "sort": lib.sort, "getn": lib.getn,
	}))
	text := l.SetFuncs(l.NewTable(), lib.strings())
	l.SetGlobal("string", text)
	// So that s:find works as well as string.find(s).
	methods := l.NewTable()
	methods.RawSetString("__index", text)
	l.SetMetatable(lua.LString(""), methods)

	for name, f := range map[string]lua.LGFunction{
		concatName: lib.concat, setName: lib.set, tableName: lib.table, keyName: lib.key,
	} {
		l.SetGlobal(name, l.NewFunction(f))
	}
}

// keep removes everything else from a table.
func keep(l *lua.LState, table *lua.LTable, names ...string) {
	kept := map[string]lua.LValue{}
	for _, name := range names {
		kept[name] = table.RawGetString(name)
	}
	var all []string
	table.ForEach(func(key, _ lua.LValue) { all = append(all, key.String()) })
	for _, name := range all {
		table.RawSetString(name, lua.LNil)
	}
	for name, value := range kept {
		l.SetField(table, name, value)
	}
}

// boundDate keeps formats short: what comes out is many times longer.
func (lib *library) boundDate(l *lua.LState, clock *lua.LTable) {
	date, ok := clock.RawGetString("date").(*lua.LFunction)
	if !ok {
		return
	}
	clock.RawSetString("date", l.NewFunction(func(l *lua.LState) int {
		if len(l.OptString(1, "")) > 64 {
			l.ArgError(1, "format is too long")
		}
		lib.left.make(l, 4<<10)
		return date.GFunction(l)
	}))
}

// boundErrors charges what a script catches: the text of an error is a new string,
// with the place of the error in front. There is no xpcall, whose handler would get
// the text before it could be charged.
func (lib *library) boundErrors(l *lua.LState) {
	pcall, ok := l.GetGlobal("pcall").(*lua.LFunction)
	if !ok {
		return
	}
	l.SetGlobal("pcall", l.NewFunction(func(l *lua.LState) int {
		count := pcall.GFunction(l)
		if message, ok := l.Get(-1).(lua.LString); ok && count == 2 {
			lib.left.make(l, len(message))
		}
		lib.left.check(l)
		return count
	}))
}

// concat is the operator of two dots.
func (lib *library) concat(l *lua.LState) int {
	a, b := l.Get(1), l.Get(2)
	if !lua.LVCanConvToString(a) || !lua.LVCanConvToString(b) {
		other := a
		if lua.LVCanConvToString(a) {
			other = b
		}
		l.RaiseError("attempt to concatenate a %s value", other.Type())
	}
	left, right := lua.LVAsString(a), lua.LVAsString(b)
	lib.left.make(l, len(left)+len(right))
	l.Push(lua.LString(left + right))
	return 1
}

// set is the assignment to an element.
func (lib *library) set(l *lua.LState) int {
	table, ok := l.Get(1).(*lua.LTable)
	if !ok {
		l.RaiseError("attempt to index a %s value", l.Get(1).Type())
	}
	key := l.Get(2)
	if key == lua.LNil {
		l.RaiseError("table index is nil")
	}
	lib.room(l, key, table.Len())
	table.RawSet(key, l.Get(3))
	return 0
}

// room charges what a table grows by if it gets the key: all elements up to a
// number are made with it.
func (lib *library) room(l *lua.LState, key lua.LValue, length int) {
	bytes := entryBytes
	if n, ok := key.(lua.LNumber); ok {
		if math.IsNaN(float64(n)) {
			l.RaiseError("table index is not a number")
		}
		if grown := float64(n) - float64(length); grown > 1 {
			bytes += int(min(grown, 1<<40)) * 16
		}
	}
	lib.left.make(l, bytes)
}

// table charges a table that a constructor has made.
func (lib *library) table(l *lua.LState) int {
	table, ok := l.Get(1).(*lua.LTable)
	if ok {
		lib.left.make(l, tableBytes+entryBytes*table.Len())
	}
	l.Push(l.Get(1))
	return 1
}

// key charges a key in a constructor.
func (lib *library) key(l *lua.LState) int {
	lib.room(l, l.Get(1), 0)
	l.Push(l.Get(1))
	return 1
}

func (lib *library) getn(l *lua.LState) int {
	l.Push(lua.LNumber(l.CheckTable(1).Len()))
	return 1
}

func (lib *library) insert(l *lua.LState) int {
	table := l.CheckTable(1)
	length := table.Len()
	lib.left.make(l, entryBytes)
	if l.GetTop() <= 2 {
		table.RawSetInt(length+1, l.CheckAny(2))
		return 0
	}
	at := l.CheckInt(2)
	if at < 1 || at > length+1 {
		l.ArgError(2, "position out of bounds")
	}
	lib.left.work(l, (length-at)/16+1)
	for i := length; i >= at; i-- {
		table.RawSetInt(i+1, table.RawGetInt(i))
	}
	table.RawSetInt(at, l.CheckAny(3))
	return 0
}

func (lib *library) remove(l *lua.LState) int {
	table := l.CheckTable(1)
	length := table.Len()
	at := l.OptInt(2, length)
	if at < 1 || at > length {
		l.Push(lua.LNil)
		return 1
	}
	lib.left.work(l, (length-at)/16+1)
	l.Push(table.Remove(at))
	return 1
}

func (lib *library) tableConcat(l *lua.LState) int {
	table, between := l.CheckTable(1), l.OptString(2, "")
	from, to := l.OptInt(3, 1), l.OptInt(4, table.Len())
	var out strings.Builder
	for i := from; i <= to; i++ {
		value := table.RawGetInt(i)
		if !lua.LVCanConvToString(value) {
			l.RaiseError("invalid value (%s) at index %d in table for concat", value.Type(), i)
		}
		text := lua.LVAsString(value)
		lib.left.make(l, len(text)+len(between))
		out.WriteString(text)
		if i < to {
			out.WriteString(between)
		}
	}
	l.Push(lua.LString(out.String()))
	return 1
}

// sort copies the elements out and in: a comparison may do with the table what it likes.
func (lib *library) sort(l *lua.LState) int {
	table := l.CheckTable(1)
	length := table.Len()
	lib.left.make(l, entryBytes*length)
	list := make([]lua.LValue, length)
	for i := range list {
		list[i] = table.RawGetInt(i + 1)
	}
	less := func(a, b lua.LValue) bool { return l.LessThan(a, b) }
	if l.GetTop() > 1 {
		compare := l.CheckFunction(2)
		less = func(a, b lua.LValue) bool {
			l.Push(compare)
			l.Push(a)
			l.Push(b)
			l.Call(2, 1)
			answer := lua.LVAsBool(l.Get(-1))
			l.Pop(1)
			return answer
		}
	}
	sort.Slice(list, func(i, j int) bool {
		lib.left.work(l, 1)
		return less(list[i], list[j])
	})
	for i, value := range list {
		table.RawSetInt(i+1, value)
	}
	return 0
}
