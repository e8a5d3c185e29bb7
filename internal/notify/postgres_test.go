// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store/postgres"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

func TestMain(m *testing.M) { pg.Main(m) }

// hurried are options with which a test sees in a second what takes a minute.
func hurried(r prometheus.Registerer) notify.Options {
	return notify.Options{
		CatchUpEvery: 300 * time.Millisecond,
		NotifyWithin: 200 * time.Millisecond,
		CallTimeout:  time.Second,
		BackoffMin:   time.Millisecond,
		BackoffMax:   20 * time.Millisecond,
		Metrics:      r,
	}
}

// noLeaks checks, after everything else was cleaned up, that nothing runs any more.
func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before, pg.IgnoreLeaks()) })
}

// reallyRunning is a notifier whose every connection leads through a proxy, and
// writers who are connected directly.
type reallyRunning struct {
	server   *pg.Server
	database string
	proxy    *proxy
	work     *workload
	notifier *notify.Listening
	recorder *recorder
	metrics  *prometheus.Registry
}

func runReally(t *testing.T, server *pg.Server) *reallyRunning {
	t.Helper()
	dsn := server.NewDatabase(t)
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p, proxied := throughProxy(t, dsn)
	r := &reallyRunning{
		server:   server,
		database: strings.TrimPrefix(address.Path, "/"),
		proxy:    p,
		work:     newWorkload(t, opened(t, dsn), 12),
		metrics:  prometheus.NewRegistry(),
	}
	listening := opened(t, proxied)
	r.notifier = notify.NewListening(notify.From(listening.Listen), listening, hurried(r.metrics))
	r.recorder = record(r.notifier)
	r.recorder.list = func() map[string]int64 { return r.work.last(t) }
	started(t, r.notifier)
	return r
}

func opened(t testing.TB, dsn string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}

// complete waits until the last change of every key was delivered, and checks
// that none went back on the way.
func (r *reallyRunning) complete(t *testing.T) {
	t.Helper()
	want := r.work.last(t)
	eventually(t, func() []string { return r.recorder.check(want) })
	t.Logf("%d changes, %d events delivered for %d keys; %v dropped, %v recovered, %v reconnects, %v catch-ups, %v resyncs",
		r.work.changes.Load(), r.recorder.count(), len(want),
		metric(t, r.metrics, "weir_notify_duplicates_dropped_total"), metric(t, r.metrics, "weir_notify_recovered_total"),
		metric(t, r.metrics, "weir_notify_reconnects_total"), metric(t, r.metrics, "weir_notify_catch_ups_total"),
		metric(t, r.metrics, "weir_notify_resyncs_total"))
}

func TestStreamWithConnectionsCut(t *testing.T) {
	faults := []struct {
		name  string
		fault func(*testing.T, *reallyRunning)
	}{
		{"none", func(*testing.T, *reallyRunning) {}},
		{"ended by the server", func(t *testing.T, r *reallyRunning) {
			if _, err := r.server.CutConnections(t.Context(), r.database); err != nil {
				t.Errorf("cut connections: %v", err)
			}
		}},
		{"cut abruptly", func(_ *testing.T, r *reallyRunning) { r.proxy.cut() }},
		{"cut in the middle of a message", func(_ *testing.T, r *reallyRunning) { r.proxy.cutAfter(rand.IntN(2000)) }},
		{"black hole", func(_ *testing.T, r *reallyRunning) { r.proxy.stall() }},
		{"stalled and late", func(t *testing.T, r *reallyRunning) {
			r.proxy.stall()
			time.AfterFunc(rand.N(200*time.Millisecond), r.proxy.resume)
		}},
		{"all of it", func(t *testing.T, r *reallyRunning) {
			[]func(){
				r.proxy.cut, r.proxy.stall, r.proxy.resume,
				func() { r.proxy.cutAfter(rand.IntN(2000)) },
				func() { _, _ = r.server.CutConnections(t.Context(), r.database) },
			}[rand.IntN(5)]()
		}},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			noLeaks(t)
			r := runReally(t, pg.Shared(t))
			r.work.write(t, 5, 160, 100, func() { f.fault(t, r) })
			r.complete(t)
			if got := r.recorder.resyncCount(); got != 0 {
				t.Errorf("%d resyncs, although the log was never trimmed", got)
			}
			if f.name == "none" && metric(t, r.metrics, "weir_notify_reconnects_total") != 0 {
				t.Error("a sound connection was replaced")
			}
		})
	}
}

func TestStreamWithServerRestarted(t *testing.T) {
	server := pg.New(t, pg.Options{Durable: true})
	stops := []struct {
		name string
		stop func() error
	}{
		{"in order", server.Halt},
		{"by a crash", server.Kill},
	}
	for _, s := range stops {
		t.Run(s.name, func(t *testing.T) {
			noLeaks(t)
			r := runReally(t, server)
			r.work.write(t, 5, 60, 100, func() {
				if err := s.stop(); err != nil {
					t.Errorf("stop: %v", err)
				}
				if err := server.Restart(t.Context()); err != nil {
					t.Errorf("restart: %v", err)
				}
			})
			r.complete(t)
		})
	}
}

func TestPostgresTrimmedLogMeansResync(t *testing.T) {
	noLeaks(t)
	r := runReally(t, pg.Shared(t))
	r.proxy.refuse(true)
	eventually(t, func() []string {
		if r.notifier.Healthy() == nil {
			return []string{"healthy without a connection"}
		}
		return nil
	})
	r.work.write(t, 2, 20, 100, func() {})
	if n, err := r.work.store.TrimChanges(t.Context(), time.Now().Add(time.Hour)); err != nil || n == 0 {
		t.Fatalf("trimmed %d: %v", n, err)
	}
	// From here on the log is all that can be asked.
	now, err := r.work.store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.work.since = now
	r.proxy.refuse(false)
	eventually(t, func() []string {
		if r.recorder.resyncCount() == 0 {
			return []string{"no resync"}
		}
		return nil
	})
	r.work.write(t, 2, 20, 100, func() {})
	r.complete(t)
	if got := r.recorder.resyncCount(); got != 1 {
		t.Errorf("%d resyncs, want 1", got)
	}
}

// A connection that is dead without saying so is found out by what it did not say,
// and its successor speaks.
func TestBlackHole(t *testing.T) {
	noLeaks(t)
	r := runReally(t, pg.Shared(t))
	r.proxy.stall()
	r.work.write(t, 1, 5, 10, func() {})
	r.complete(t)
	eventually(t, func() []string {
		if metric(t, r.metrics, "weir_notify_reconnects_total") == 0 {
			return []string{"the dead connection is still trusted"}
		}
		if err := r.notifier.Healthy(); err != nil {
			return []string{err.Error()}
		}
		return nil
	})
	r.work.write(t, 1, 5, 10, func() {})
	r.complete(t)
}
