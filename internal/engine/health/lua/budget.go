// SPDX-License-Identifier: Apache-2.0

package lua

import (
	"errors"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// ErrBudget is a check that did too much: too many steps, bytes or seconds.
var ErrBudget = errors.New("the health check used up its budget")

// Limits bound one run.
type Limits struct {
	// Steps are instructions, and steps of library functions.
	Steps int
	// Bytes of strings and tables that the script may make.
	Bytes int
	// ObjectBytes is what the object may need as Lua tables.
	ObjectBytes int
	// Time that a run may take.
	Time time.Duration
}

// DefaultLimits are ample for published checks, which need some hundred steps.
func DefaultLimits() Limits {
	return Limits{Steps: 500_000, Bytes: 8 << 20, ObjectBytes: 32 << 20, Time: time.Second}
}

// stepsBetweenClocks is how often to look at the clock. An instruction that
// compares or converts the longest string there can be takes milliseconds, so a
// run may outlive its time by some of those, and not more.
const stepsBetweenClocks = 16

// budget is what a run has left, as the context of its interpreter.
type budget struct {
	steps, bytes int
	until        time.Time
	spent        chan struct{}
	over         bool
	untilClock   int
}

func newBudget(limits Limits) *budget {
	spent := make(chan struct{})
	close(spent)
	return &budget{steps: limits.Steps, bytes: limits.Bytes, until: time.Now().Add(limits.Time), spent: spent}
}

// Done is called before every instruction, and counts it.
func (b *budget) Done() <-chan struct{} {
	b.step(1)
	if b.over {
		return b.spent
	}
	return nil
}

func (b *budget) step(n int) {
	b.steps -= n
	b.untilClock -= n
	if b.untilClock <= 0 {
		b.untilClock = stepsBetweenClocks
		b.over = b.over || !time.Now().Before(b.until)
	}
	b.over = b.over || b.steps < 0
}

// Err is set once the budget is used up.
func (b *budget) Err() error {
	if b.over {
		return ErrBudget
	}
	return nil
}

// Deadline is when the time is over.
func (b *budget) Deadline() (time.Time, bool) { return b.until, true }

// Value has none.
func (b *budget) Value(any) any { return nil }

// work charges steps within a library function, and ends it if there are none left.
func (b *budget) work(l *lua.LState, steps int) {
	b.step(steps)
	b.check(l)
}

// make charges bytes before they are made.
func (b *budget) make(l *lua.LState, bytes int) {
	// A sum that overflows would be a refund.
	if bytes < 0 || bytes > b.bytes {
		b.over = true
	} else {
		b.bytes -= bytes
	}
	b.work(l, 1+bytes/256)
}

func (b *budget) check(l *lua.LState) {
	if b.over {
		l.RaiseError("%s", ErrBudget.Error())
	}
}
