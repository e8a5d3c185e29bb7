// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/internal/fairq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(workspace, name string) fairq.Key {
	return fairq.Key{Workspace: workspace, Application: name, Runner: "environment"}
}

// told keeps for whom Done was called.
type told struct {
	mu   sync.Mutex
	keys []string
}

func (d *told) done(k fairq.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = append(d.keys, k.Workspace+"/"+k.Application)
}

func (d *told) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.keys...)
}

func expect[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// pool is a pool in a bubble of time, which ends with the test.
func pool(t *testing.T, o Options) (*Probes[string], *told) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	d := &told{}
	o.Done = d.done
	p := New[string](ctx, o)
	t.Cleanup(func() {
		cancel()
		p.Wait()
	})
	return p, d
}

func standard() Options { return Options{Timeout: time.Minute, PerTenant: 2, Total: 10} }

// says answers after a while, unless the probe ends before.
func says(answer string, after time.Duration) func(context.Context) string {
	return func(ctx context.Context) string {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
			return answer
		case <-ctx.Done():
			return "ended: " + context.Cause(ctx).Error()
		}
	}
}

const never = 1000 * time.Hour

// mustNotAsk is for questions whose answer is there or on its way.
func mustNotAsk(t *testing.T) func(context.Context) string {
	return func(context.Context) string {
		t.Error("asked once more")
		return ""
	}
}

func TestAnAnswerIsGivenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, d := pool(t, standard())
		a := key("team-a", "prod")
		if _, answered := p.Ask(a, "1", says("ok", time.Second)); answered {
			t.Fatal("answered before anybody was asked")
		}
		if _, answered := p.Ask(a, "1", mustNotAsk(t)); answered {
			t.Fatal("answered while the probe runs")
		}
		expect(t, "told before the answer", nil, d.all())
		time.Sleep(time.Second)
		synctest.Wait()
		expect(t, "told", []string{"team-a/prod"}, d.all())
		answer, answered := p.Ask(a, "1", mustNotAsk(t))
		if !answered || answer != "ok" {
			t.Errorf("got %q, %v", answer, answered)
		}
		// It is forgotten: who asks again gets a new answer.
		if _, answered := p.Ask(a, "1", says("again", time.Second)); answered {
			t.Error("an answer was given twice")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if answer, _ := p.Ask(a, "1", mustNotAsk(t)); answer != "again" {
			t.Errorf("got %q", answer)
		}
		expect(t, "told", []string{"team-a/prod", "team-a/prod"}, d.all())
	})
}

func TestAnotherDigestReplacesTheQuestion(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"while it runs": 0, "after it was answered": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, d := pool(t, standard())
				a := key("team-a", "prod")
				p.Ask(a, "old", says("old", time.Second))
				time.Sleep(pause)
				before := len(d.all())
				if answer, answered := p.Ask(a, "new", says("new", 5*time.Second)); answered {
					t.Errorf("a question is answered with %q, which was another one's answer", answer)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				expect(t, "told since", 1, len(d.all())-before)
				if answer, answered := p.Ask(a, "new", mustNotAsk(t)); !answered || answer != "new" {
					t.Errorf("got %q, %v", answer, answered)
				}
			})
		})
	}
}

func TestWhatIsDroppedIsCancelledAndNotTold(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(*Probes[string], fairq.Key){
		"forgotten": func(p *Probes[string], k fairq.Key) { p.Forget(k) },
		"replaced":  func(p *Probes[string], k fairq.Key) { p.Ask(k, "another", says("another", never)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, d := pool(t, standard())
				a := key("team-a", "prod")
				var ended error
				p.Ask(a, "1", func(ctx context.Context) string {
					<-ctx.Done()
					ended = context.Cause(ctx)
					return "late"
				})
				synctest.Wait()
				drop(p, a)
				synctest.Wait()
				if !errors.Is(ended, context.Canceled) {
					t.Errorf("the probe ended with %v; want that it was cancelled", ended)
				}
				expect(t, "told", nil, d.all())
			})
		})
	}
}

func TestForgetTakesAQuestionOutOfTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := standard()
		o.PerTenant = 1
		p, d := pool(t, o)
		p.Ask(key("team-a", "first"), "1", says("first", time.Second))
		p.Ask(key("team-a", "second"), "1", mustNotAsk(t))
		p.Ask(key("team-a", "third"), "1", says("third", time.Second))
		p.Forget(key("team-a", "second"))
		p.Forget(key("team-a", "nobody asked"))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		expect(t, "told", []string{"team-a/first", "team-a/third"}, d.all())
	})
}

func TestTheTimeoutEndsAProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, d := pool(t, standard())
		a := key("team-a", "dead")
		p.Ask(a, "1", says("", never))
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		expect(t, "told before the timeout", nil, d.all())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		expect(t, "told", []string{"team-a/dead"}, d.all())
		if answer, answered := p.Ask(a, "1", mustNotAsk(t)); !answered || answer != "ended: context deadline exceeded" {
			t.Errorf("got %q, %v", answer, answered)
		}
	})
}

// One tenant names servers that never answer, many of them. Another tenant's
// probe starts at once all the same.
func TestATenantsDeadServersDelayNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, d := pool(t, Options{Timeout: time.Minute, PerTenant: 2, Total: 4})
		for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
			p.Ask(key("team-dead", name), "1", says("", never))
		}
		start := time.Now()
		p.Ask(key("team-b", "prod"), "1", says("ok", time.Millisecond))
		time.Sleep(time.Millisecond)
		synctest.Wait()
		expect(t, "told after "+time.Since(start).String(), []string{"team-b/prod"}, d.all())

		// The dead ones have their turn two at a time.
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		expect(t, "told in the end", 9, len(d.all()))
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o          Options
		workspaces []string
		running    int
		took       time.Duration
	}{
		"per tenant":                   {Options{PerTenant: 2, Total: 100}, []string{"a", "a", "a", "a", "a"}, 2, 3 * time.Second},
		"in all":                       {Options{PerTenant: 10, Total: 3}, []string{"a", "b", "c", "d", "e", "f"}, 3, 2 * time.Second},
		"both":                         {Options{PerTenant: 1, Total: 2}, []string{"a", "a", "b", "b", "b"}, 2, 3 * time.Second},
		"one tenant may not have all":  {Options{PerTenant: 2, Total: 3}, []string{"a", "a", "a", "b"}, 3, 2 * time.Second},
		"fewer than the limits, so at": {Options{PerTenant: 2, Total: 3}, []string{"a", "b"}, 2, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.o.Timeout = time.Hour
				p, d := pool(t, c.o)
				var (
					mu            sync.Mutex
					running, most int
				)
				start := time.Now()
				for i, workspace := range c.workspaces {
					p.Ask(key(workspace, string(rune('0'+i))), "1", func(ctx context.Context) string {
						mu.Lock()
						running++
						most = max(most, running)
						mu.Unlock()
						answer := says("", time.Second)(ctx)
						mu.Lock()
						running--
						mu.Unlock()
						return answer
					})
				}
				for len(d.all()) < len(c.workspaces) {
					time.Sleep(time.Second)
					synctest.Wait()
				}
				expect(t, "most at once", c.running, most)
				expect(t, "took", c.took, time.Since(start))
			})
		})
	}
}

// What a probe answers because its process stops says nothing about the server.
func TestAnswersAfterTheEndAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := &told{}
		p := New[string](ctx, Options{Timeout: time.Minute, PerTenant: 1, Total: 1, Done: d.done})
		a, b := key("team-a", "runs"), key("team-b", "waits")
		p.Ask(a, "1", says("ok", time.Second))
		p.Ask(b, "1", says("ok", time.Second))
		cancel()
		p.Wait()
		expect(t, "told", nil, d.all())
		for _, k := range []fairq.Key{a, b} {
			if answer, answered := p.Ask(k, "1", says("", 0)); answered {
				t.Errorf("%s is answered with %q", k, answer)
			}
		}
		p.Wait()
	})
}

// Nothing is kept for tenants that ask nothing any more.
func TestNothingIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := pool(t, standard())
		for _, workspace := range []string{"a", "b", "c"} {
			for _, name := range []string{"1", "2", "3"} {
				p.Ask(key(workspace, name), "1", says("ok", time.Second))
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, workspace := range []string{"a", "b", "c"} {
			for _, name := range []string{"1", "2", "3"} {
				p.Ask(key(workspace, name), "1", mustNotAsk(t))
			}
		}
		if len(p.asked)+len(p.waiting)+len(p.running)+p.total != 0 {
			t.Errorf("%d asked, %d waiting, %d running, %d in all", len(p.asked), len(p.waiting), len(p.running), p.total)
		}
	})
}
