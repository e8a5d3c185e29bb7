// SPDX-License-Identifier: Apache-2.0

// Package probe asks servers that tenants name: does the cluster answer, does the
// repository take the credential. Such a server may never answer, so nobody waits
// for it:
//
//	step ──Ask──▶ no answer yet: a probe starts, the step ends
//	                 │ (its own goroutine, with a deadline)
//	                 ▼
//	              Done: the step runs again ──Ask──▶ the answer
//
// A step that asks holds neither a worker nor its tenant's turn while the probe
// runs. Each tenant has a few probes at a time, the others of that tenant queue
// behind them, and what one tenant's servers do not answer is nothing to another.
//
// An answer belongs to what was asked: a question with another digest starts a new
// probe, and the old one's answer, should it still come, is dropped.
package probe

import (
	"context"
	"sync"
	"time"

	"github.com/weir-gitops/weir/internal/fairq"
)

// Options are the limits.
type Options struct {
	// Timeout ends a probe that gets no answer.
	Timeout time.Duration
	// PerTenant is how many probes of one tenant run at once, Total how many at all.
	PerTenant int
	Total     int
	// Done is called when an answer is there: the step that asked should run again.
	Done func(fairq.Key)
}

// Probes runs probes and keeps their answers until they are taken. A is what an
// answer is.
type Probes[A any] struct {
	options Options
	// ctx ends all probes.
	ctx context.Context

	mu      sync.Mutex
	asked   map[fairq.Key]*question[A]
	waiting map[string][]*question[A] // by workspace, oldest first
	running map[string]int
	total   int
	wait    sync.WaitGroup
}

type question[A any] struct {
	key    fairq.Key
	digest string
	ask    func(context.Context) A
	cancel context.CancelFunc
	answer *A
}

// New makes a pool. Its probes end with the context; Wait waits for that.
func New[A any](ctx context.Context, o Options) *Probes[A] {
	return &Probes[A]{
		options: o, ctx: ctx,
		asked: map[fairq.Key]*question[A]{}, waiting: map[string][]*question[A]{}, running: map[string]int{},
	}
}

// Ask gives the answer to a question, if it is there; the question is then
// forgotten. Otherwise it sees to it that a probe runs, or will, and that Done is
// called after it. A question about the same key with another digest replaces the
// one before.
func (p *Probes[A]) Ask(key fairq.Key, digest string, ask func(context.Context) A) (answer A, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.asked[key]; q != nil {
		if q.digest == digest {
			if q.answer == nil {
				return answer, false
			}
			delete(p.asked, key)
			return *q.answer, true
		}
		p.drop(q)
	}
	q := &question[A]{key: key, digest: digest, ask: ask}
	p.asked[key] = q
	p.waiting[key.Workspace] = append(p.waiting[key.Workspace], q)
	p.start()
	return answer, false
}

// Forget drops whatever was asked about a key.
func (p *Probes[A]) Forget(key fairq.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.asked[key]; q != nil {
		p.drop(q)
	}
}

func (p *Probes[A]) drop(q *question[A]) {
	delete(p.asked, q.key)
	if q.cancel != nil {
		q.cancel()
		return
	}
	line := p.waiting[q.key.Workspace]
	for i, other := range line {
		if other == q {
			p.setLine(q.key.Workspace, append(line[:i:i], line[i+1:]...))
			return
		}
	}
}

func (p *Probes[A]) setLine(workspace string, line []*question[A]) {
	if len(line) == 0 {
		delete(p.waiting, workspace)
		return
	}
	p.waiting[workspace] = line
}

// start begins as many probes as there is room for. Tenants with waiting
// questions are few, so walking them is cheap; a map's order gives each its chance.
func (p *Probes[A]) start() {
	for workspace, line := range p.waiting {
		for len(line) > 0 && p.running[workspace] < p.options.PerTenant && p.total < p.options.Total {
			p.run(line[0])
			line = line[1:]
		}
		p.setLine(workspace, line)
	}
}

func (p *Probes[A]) run(q *question[A]) {
	ctx, cancel := context.WithTimeout(p.ctx, p.options.Timeout)
	q.cancel = cancel
	p.running[q.key.Workspace]++
	p.total++
	p.wait.Go(func() {
		defer cancel()
		answer := q.ask(ctx)
		if p.finish(q, answer) {
			p.options.Done(q.key)
		}
	})
}

// finish says whether somebody still wants the answer.
func (p *Probes[A]) finish(q *question[A], answer A) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total--
	if p.running[q.key.Workspace]--; p.running[q.key.Workspace] == 0 {
		delete(p.running, q.key.Workspace)
	}
	p.start()
	if p.asked[q.key] != q || p.ctx.Err() != nil {
		return false
	}
	q.answer = &answer
	return true
}

// Wait waits until no probe runs, after the context has ended.
func (p *Probes[A]) Wait() { p.wait.Wait() }
