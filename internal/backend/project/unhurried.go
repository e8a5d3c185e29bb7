// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Unhurried records events a moment later. What a tenant waits for is written in
// the meantime: an event is one more write to the same API server, and the only one
// that nobody waits for.
type Unhurried struct {
	to    Recorder
	after time.Duration
	line  chan remark
}

type remark struct {
	at   time.Time
	tell func()
}

// unhurriedLine is how many events may wait; more are recorded at once.
const unhurriedLine = 4096

// NewUnhurried makes one. Nothing is recorded before Run.
func NewUnhurried(to Recorder, after time.Duration) *Unhurried {
	return &Unhurried{to: to, after: after, line: make(chan remark, unhurriedLine)}
}

// Eventf implements Recorder.
func (u *Unhurried) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r := remark{time.Now().Add(u.after), func() { u.to.Eventf(regarding, related, eventType, reason, action, note, args...) }}
	select {
	case u.line <- r:
	default:
		r.tell()
	}
}

// Run records until the context ends, and then what still waits.
func (u *Unhurried) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return u.rest()
		case r := <-u.line:
			timer := time.NewTimer(time.Until(r.at))
			select {
			case <-ctx.Done():
				timer.Stop()
			case <-timer.C:
			}
			r.tell()
		}
	}
}

func (u *Unhurried) rest() error {
	for {
		select {
		case r := <-u.line:
			r.tell()
		default:
			return nil
		}
	}
}
