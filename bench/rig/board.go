// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Board is where what was seen in a watch meets those who wait for it.
type Board struct {
	mu      sync.Mutex
	awaited map[Sight]chan time.Time
}

// Sight names something that may be seen, see the constructors below.
type Sight struct{ what, which string }

// String is for error messages.
func (s Sight) String() string { return s.what + " " + s.which }

// ApplicationWith is an Application whose source has this path.
func ApplicationWith(path string) Sight { return Sight{"an Application with path", path} }

// ApplicationGone is the end of an Application.
func ApplicationGone(name string) Sight { return Sight{"the end of Application", name} }

// ApplicationGoing is an Application that has been marked as deleted.
func ApplicationGoing(name string) Sight { return Sight{"the deletion of Application", name} }

// StatusWith is a GitOpsDeployment whose status speaks of this revision.
func StatusWith(revision string) Sight {
	return Sight{"a GitOpsDeployment status with revision", revision}
}

// SyncAsked is an Application that the engine is asked to sync.
func SyncAsked(application string) Sight {
	return Sight{"a request for the sync of Application", application}
}

// TokenKnown is a cluster Secret of the engine that holds this token.
func TokenKnown(token string) Sight { return Sight{"a cluster Secret with token", token} }

// Connected is a GitOpsDeploymentManagedEnvironment whose cluster has answered.
func Connected(namespace, name string) Sight {
	return Sight{"the connection of environment", namespace + "/" + name}
}

// FloorObject is an object of the bare client, in a certain version.
func FloorObject(which string) Sight { return Sight{"the floor's", which} }

// Expect registers that something is awaited. It has to be called before what
// leads to it is begun; the first sighting after that counts.
func (b *Board) Expect(s Sight) *Sighting {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.awaited == nil {
		b.awaited = make(map[Sight]chan time.Time)
	}
	c := make(chan time.Time, 1)
	b.awaited[s] = c
	return &Sighting{sight: s, seen: c}
}

// see notes that something was seen. What nobody waits for is forgotten.
func (b *Board) see(s Sight, at time.Time) {
	b.mu.Lock()
	c, awaited := b.awaited[s]
	delete(b.awaited, s)
	b.mu.Unlock()
	if awaited {
		c <- at
	}
}

// Sighting is something that is awaited.
type Sighting struct {
	sight Sight
	seen  <-chan time.Time
}

// Seen says whether it has been seen. It takes nothing away.
func (s *Sighting) Seen() bool { return len(s.seen) > 0 }

// patience is how long a sighting may take before a scenario is given up: far
// beyond every target.
const patience = 2 * time.Minute

// NotSeenError is the error of something that did not come.
type NotSeenError struct {
	Sight Sight
	Cause error
}

func (n *NotSeenError) Error() string { return fmt.Sprintf("waited for %s: %v", n.Sight, n.Cause) }

// Unwrap gives why the waiting ended.
func (n *NotSeenError) Unwrap() error { return n.Cause }

// Wait gives the time at which it was seen.
func (s *Sighting) Wait(ctx context.Context) (time.Time, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case at := <-s.seen:
		return at, nil
	case <-timer.C:
		return time.Time{}, &NotSeenError{s.sight, fmt.Errorf("%w within %s", errNotSeen, patience)}
	case <-ctx.Done():
		return time.Time{}, &NotSeenError{s.sight, context.Cause(ctx)}
	}
}

// WaitAll gives the time of the last of several.
func WaitAll(ctx context.Context, all []*Sighting) (time.Time, error) {
	var last time.Time
	for _, s := range all {
		at, err := s.Wait(ctx)
		if err != nil {
			return last, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}
