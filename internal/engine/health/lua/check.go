// SPDX-License-Identifier: Apache-2.0

package lua

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-gitops/weir/internal/engine/health"
)

// Errors of checks, besides ErrBudget.
var (
	// ErrScript is a script that cannot be compiled, or that failed.
	ErrScript = errors.New("the health check failed")
	// ErrResult is a script that did not return what a check returns.
	ErrResult = errors.New("the health check returned no health")
	// ErrObject is an object that is too large for a check.
	ErrObject = errors.New("the object is too large for a health check")
)

const (
	maxScript  = 64 << 10
	maxMessage = 4 << 10
	// Calls within calls, and values on the stack.
	callStack    = 120
	registry     = 1024
	maxRegistry  = 16 << 10
	registryStep = 1024
)

// Check is a compiled script. It has no state of its own: every run begins anew,
// and many can go on at once.
type Check struct {
	code   *lua.FunctionProto
	limits Limits
}

var _ health.Assessor = (*Check)(nil)

// Compile reads a script. The name is for messages.
func Compile(name, script string, limits Limits) (*Check, error) {
	if len(script) > maxScript {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrScript, name, maxScript)
	}
	block, err := parse.Parse(strings.NewReader(script), name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrScript, err)
	}
	var r rewriter
	if r.rewriteBlock(block); r.tooDeep {
		return nil, fmt.Errorf("%w: %s is nested more than %d levels deep", ErrScript, name, maxNesting)
	}
	code, err := lua.Compile(block, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrScript, err)
	}
	return &Check{code, limits}, nil
}

// GetResourceHealth runs the script. Nil if it returns nil: no opinion.
func (c *Check) GetResourceHealth(obj *unstructured.Unstructured) (*health.HealthStatus, error) {
	l := lua.NewState(lua.Options{
		SkipOpenLibs: true, CallStackSize: callStack, MinimizeStackMemory: true,
		RegistrySize: registry, RegistryMaxSize: maxRegistry, RegistryGrowStep: registryStep,
	})
	defer l.Close()
	left := newBudget(c.limits)
	openLibraries(l, left)
	value, err := convert(obj.Object, c.limits.ObjectBytes)
	if err != nil {
		return nil, err
	}
	l.SetGlobal("obj", value)
	l.SetContext(left)
	l.Push(l.NewFunctionFromProto(c.code))
	err = l.PCall(0, 1, nil)
	if left.over {
		return nil, ErrBudget
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrScript, firstLine(err))
	}
	return result(l.Get(-1))
}

// firstLine is an error without the stack of the interpreter. Scripts can put
// anything in, so it is cut.
func firstLine(err error) string {
	text := err.Error()
	var fault *lua.ApiError
	if errors.As(err, &fault) && fault.Object != nil {
		text = fault.Object.String()
	}
	text, _, _ = strings.Cut(text, "\n")
	return cut(text)
}

func cut(text string) string {
	if len(text) > maxMessage {
		text = text[:maxMessage] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// result reads what the script returned.
func result(value lua.LValue) (*health.HealthStatus, error) {
	if value == lua.LNil {
		return nil, nil
	}
	table, ok := value.(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("%w, but a %s: return a table with status and message", ErrResult, value.Type())
	}
	status := health.Status(lua.LVAsString(table.RawGetString("status")))
	switch status {
	case health.Healthy, health.Suspended, health.Progressing, health.Missing, health.Degraded, health.Unknown:
	default:
		return nil, fmt.Errorf("%w: its status is %q", ErrResult, cut(string(status)))
	}
	return &health.HealthStatus{Status: status, Message: cut(lua.LVAsString(table.RawGetString("message")))}, nil
}

// What a table and one of its entries need, roughly and rather too much.
const (
	tableBytes = 1 << 10
	entryBytes = 64
)

// convert makes Lua of an object. Null is absent, as a table cannot hold nil.
func convert(value any, limit int) (lua.LValue, error) {
	c := &converter{left: limit}
	out := c.value(value)
	if c.left < 0 {
		return nil, ErrObject
	}
	return out, nil
}

type converter struct{ left int }

func (c *converter) value(value any) lua.LValue {
	if c.left -= entryBytes; c.left < 0 {
		return lua.LNil
	}
	switch v := value.(type) {
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case int:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case map[string]any:
		c.left -= tableBytes
		table := &lua.LTable{Metatable: lua.LNil}
		for name, inner := range v {
			table.RawSetString(name, c.value(inner))
		}
		return table
	case []any:
		c.left -= tableBytes
		table := &lua.LTable{Metatable: lua.LNil}
		for _, inner := range v {
			table.Append(c.value(inner))
		}
		return table
	default:
		return lua.LNil
	}
}
