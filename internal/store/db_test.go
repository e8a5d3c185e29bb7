// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
)

var (
	errContended = errors.New("lost against another transaction")
	errAway      = errors.New("connection refused")
	errDuplicate = errors.New("duplicate key")
	errBug       = errors.New("syntax error")
)

// table is a dialect whose errors are those above.
type table struct{}

func (table) Time(t time.Time) any { return t }

func (table) Classify(err error) Fault {
	switch {
	case errors.Is(err, errContended):
		return FaultContended
	case errors.Is(err, errAway):
		return FaultUnavailable
	case errors.Is(err, errDuplicate):
		return FaultDuplicate
	default:
		return FaultOther
	}
}

func TestAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		fails  []error // what the first runs return
		runs   int
		want   error
		atMost time.Duration
	}{
		{"works", nil, 1, nil, 0},
		{"works the third time", []error{errContended, errContended}, 3, nil, 20 * time.Millisecond},
		{
			"never works",
			[]error{errContended, errContended, errContended, errContended, errContended, errContended, errContended},
			attempts, domain.ErrConflict, 200 * time.Millisecond,
		},
		{"is away", []error{errAway}, 1, domain.ErrUnavailable, 0},
		{"is a duplicate", []error{errDuplicate}, 1, domain.ErrConflict, 0},
		{"is a bug", []error{errBug}, 1, errBug, 0},
		{"loses and then finds a duplicate", []error{errContended, errDuplicate}, 2, domain.ErrConflict, 10 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewDB(Config{Dialect: table{}})
				runs, start := 0, time.Now()
				err := d.again(t.Context(), "try", func() error {
					runs++
					if runs <= len(c.fails) {
						return c.fails[runs-1]
					}
					return nil
				})
				if !errors.Is(err, c.want) || runs != c.runs {
					t.Errorf("%v after %d runs, want %v after %d", err, runs, c.want, c.runs)
				}
				if took := time.Since(start); took > c.atMost {
					t.Errorf("took %s, want at most %s", took, c.atMost)
				}
			})
		})
	}
}

func TestAgainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDB(Config{Dialect: table{}})
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		err := d.again(ctx, "try", func() error {
			runs++
			cancel()
			return errContended
		})
		if !errors.Is(err, context.Canceled) || errors.Is(err, domain.ErrConflict) || runs != 1 {
			t.Errorf("%v after %d runs, want %v after one", err, runs, context.Canceled)
		}
	})
}

func TestExplain(t *testing.T) {
	err := Explain(t.Context(), table{}, "finish an operation", errAway)
	if !errors.Is(err, domain.ErrUnavailable) || !errors.Is(err, errAway) {
		t.Errorf("%v: want both its meaning and its cause", err)
	}
	if want := "finish an operation: unavailable: connection refused"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestStorable(t *testing.T) {
	for in, want := range map[string]string{
		"":                 "",
		"plain · naïve":    "plain · naïve",
		"nul\x00":          "nul\uFFFD",
		"cut \xe2\x82 off": "cut \uFFFD off",
	} {
		if got := storable(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
