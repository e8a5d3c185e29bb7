// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
)

// FieldError is a field that has not the type it should have.
type FieldError struct {
	Field string
	Want  string
}

// Error names the field and what should be there, not what is.
func (e *FieldError) Error() string { return fmt.Sprintf("%s is not %s", e.Field, e.Want) }

// fields reads an object. What is absent or null reads as zero; what has the
// wrong type does too, and the first of those is kept in err, which the caller
// looks at once, at the end.
type fields struct {
	object map[string]any
	prefix string
	err    error
}

func (f *fields) fault(path []string, want string) {
	if f.err == nil {
		f.err = &FieldError{Field: f.prefix + strings.Join(path, "."), Want: want}
	}
}

// value is what is at the path, or nil.
func (f *fields) value(path ...string) any {
	var value any = f.object
	for i, name := range path {
		if value == nil {
			return nil
		}
		object, ok := value.(map[string]any)
		if !ok {
			f.fault(path[:i], "an object")
			return nil
		}
		value = object[name]
	}
	return value
}

func (f *fields) has(path ...string) bool { return f.value(path...) != nil }

func (f *fields) text(path ...string) string {
	value := f.value(path...)
	text, ok := value.(string)
	if !ok && value != nil {
		f.fault(path, "a string")
	}
	return text
}

func (f *fields) flag(path ...string) bool {
	value := f.value(path...)
	flag, ok := value.(bool)
	if !ok && value != nil {
		f.fault(path, "true or false")
	}
	return flag
}

// number reads a whole number. Decoders make different types of them.
func (f *fields) number(path ...string) int64 { return f.numberOr(0, path...) }

func (f *fields) numberOr(otherwise int64, path ...string) int64 {
	switch value := f.value(path...).(type) {
	case nil:
		return otherwise
	case int64:
		return value
	case int:
		return int64(value)
	case int32:
		return int64(value)
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	f.fault(path, "a whole number")
	return otherwise
}

// length is that of a list.
func (f *fields) length(path ...string) int {
	value := f.value(path...)
	list, ok := value.([]any)
	if !ok && value != nil {
		f.fault(path, "a list")
	}
	return len(list)
}

// each calls do for each object of a list.
func (f *fields) each(do func(*fields), path ...string) {
	value := f.value(path...)
	list, ok := value.([]any)
	if !ok && value != nil {
		f.fault(path, "a list")
	}
	for i, element := range list {
		where := fmt.Sprintf("%s[%d]", strings.Join(path, "."), i)
		object, ok := element.(map[string]any)
		if !ok {
			f.fault([]string{where}, "an object")
			return
		}
		inner := &fields{object: object, prefix: f.prefix + where + "."}
		do(inner)
		if f.err == nil {
			f.err = inner.err
		}
	}
}

// condition is one entry of status.conditions.
type condition struct{ kind, status, reason, message string }

func (c condition) isTrue() bool { return c.status == "True" }

func (c condition) isFalse() bool { return c.status == "False" }

// text is the message, or what else there is to say.
func (c condition) text() string {
	switch {
	case c.reason != "" && c.message != "":
		return c.reason + ": " + c.message
	case c.message != "":
		return c.message
	case c.reason != "":
		return c.reason
	default:
		return c.kind + " is " + c.status
	}
}

func readCondition(f *fields) condition {
	return condition{f.text("type"), f.text("status"), f.text("reason"), f.text("message")}
}

// conditions are those of the status, by type.
func (f *fields) conditions() map[string]condition {
	all := map[string]condition{}
	f.each(func(f *fields) {
		c := readCondition(f)
		all[c.kind] = c
	}, "status", "conditions")
	return all
}

// outdated says whether the status is about an earlier spec than the one there
// is, or whether there is none yet.
func (f *fields) outdated() bool {
	return f.number("metadata", "generation") > f.number("status", "observedGeneration")
}
