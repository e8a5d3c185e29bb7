// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/internal/fairq"
)

// asked is what the model keeps of a question that is open or answered.
type asked struct {
	digest   string
	answered bool
}

// model is what the pool should look like, said in the simplest way: which
// questions are open, which are answered, how often each was told. A probe ends
// when the test lets it, so the model knows all answers.
type model struct {
	pool *Probes[string]

	mu      sync.Mutex
	release map[string]chan struct{} // by key and digest and number: a running probe
	told    []fairq.Key

	open   map[fairq.Key]*asked
	expect []fairq.Key // whom Done is to be called for
	number int
}

func (m *model) ask(t *rapid.T, k fairq.Key, digest string) {
	m.number++
	name := fmt.Sprintf("%s %s %d", k, digest, m.number)
	answer, answered := m.pool.Ask(k, digest, func(ctx context.Context) string {
		end := make(chan struct{})
		m.mu.Lock()
		m.release[name] = end
		m.mu.Unlock()
		select {
		case <-end:
		case <-ctx.Done():
		}
		m.mu.Lock()
		delete(m.release, name)
		m.mu.Unlock()
		return digest
	})
	have := m.open[k]
	switch {
	case have != nil && have.digest == digest && have.answered:
		if !answered || answer != digest {
			t.Fatalf("%s: got %q, %v; the answer was there", name, answer, answered)
		}
		delete(m.open, k)
	case answered:
		t.Fatalf("%s: got %q, and nobody had answered", name, answer)
	case have == nil || have.digest != digest:
		m.open[k] = &asked{digest: digest}
	}
}

// end lets one running probe end. The question it is for is answered, unless it
// was dropped: then the probe has ended already.
func (m *model) end(t *rapid.T) {
	m.mu.Lock()
	names := slices.Sorted(maps.Keys(m.release))
	if len(names) == 0 {
		m.mu.Unlock()
		return
	}
	name := rapid.SampledFrom(names).Draw(t, "ends")
	close(m.release[name])
	delete(m.release, name)
	m.mu.Unlock()
	for k, q := range m.open {
		if !q.answered && len(name) > len(k.String()) && name[:len(k.String())+1+len(q.digest)] == k.String()+" "+q.digest {
			q.answered = true
			m.expect = append(m.expect, k)
		}
	}
}

func (m *model) check(t *rapid.T, o Options) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.expect, m.told) {
		t.Fatalf("told %v; want %v", m.told, m.expect)
	}
	perTenant, unanswered := map[string]int{}, map[string]int{}
	for name := range m.release {
		perTenant[name[:len("team-0")]]++
	}
	waiting := 0
	for k, q := range m.open {
		if !q.answered {
			unanswered[k.Workspace]++
		}
	}
	for workspace, n := range unanswered {
		if perTenant[workspace] > o.PerTenant {
			t.Fatalf("%d probes of %s run", perTenant[workspace], workspace)
		}
		waiting += min(n, o.PerTenant)
	}
	// As many run as the limits allow: no room is left unused while somebody waits.
	if want := min(waiting, o.Total); len(m.release) != want {
		t.Fatalf("%d probes run; %v are open, so %d should", len(m.release), unanswered, want)
	}
}

func TestPoolAgainstAModel(t *testing.T) {
	t.Parallel()
	outside := t
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Timeout: 24 * time.Hour, PerTenant: rapid.IntRange(1, 3).Draw(t, "per tenant"), Total: rapid.IntRange(1, 5).Draw(t, "total"),
		}
		steps := rapid.IntRange(1, 40).Draw(t, "steps")
		// Rapid ends a try by a panic, which must not leave the bubble.
		var ended any
		synctest.Test(outside, func(inside *testing.T) {
			ctx, cancel := context.WithCancel(inside.Context())
			m := &model{release: map[string]chan struct{}{}, open: map[fairq.Key]*asked{}}
			o.Done = func(k fairq.Key) {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.told = append(m.told, k)
			}
			m.pool = New[string](ctx, o)
			defer func() {
				ended = recover()
				cancel()
				m.pool.Wait()
			}()
			for range steps {
				k := key(fmt.Sprintf("team-%d", rapid.IntRange(0, 2).Draw(t, "tenant")), fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "name")))
				switch rapid.IntRange(0, 5).Draw(t, "what") {
				case 0:
					m.pool.Forget(k)
					delete(m.open, k)
				case 1, 2:
					m.end(t)
				default:
					m.ask(t, k, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "digest"))
				}
				synctest.Wait()
				m.check(t, o)
			}
		})
		if ended != nil {
			panic(ended)
		}
	})
}
