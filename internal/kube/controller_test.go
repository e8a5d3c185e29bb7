// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/telemetry"
)

var key = fairq.Key{Workspace: "team-a", Application: "shop", Runner: fairq.RunnerDeployment}

// newController gives a controller that never starts, of a manager that never
// connects: outcomes are mapped by its Reconcile.
func newController(t *testing.T, level string, step Step) (Controller, *strings.Builder) {
	t.Helper()
	mgr, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Scheme: NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := &strings.Builder{}
	log, err := telemetry.NewLogger(out, telemetry.LogOptions{Format: "text", Level: level})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewController(mgr, ControllerOptions{
		Name: "test", Workers: 1, PerWorkspace: 1, Log: log,
		Work: func(k fairq.Key) telemetry.Work { return telemetry.Work{Namespace: k.Workspace, Name: k.Application} },
	}, step)
	if err != nil {
		t.Fatal(err)
	}
	return c, out
}

func TestOutcomesBecomeRetriesAndLogLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome     error
		first, last time.Duration // the bounds of the first wait
		logged      string
	}{
		"done":           {nil, 0, 0, ""},
		"conflict":       {fmt.Errorf("write: %w", domain.ErrConflict), firstRetry, firstRetry, "level=DEBUG"},
		"waiting":        {fmt.Errorf("place: %w", &domain.Waiting{For: "an engine"}), firstRetry, firstRetry, "level=DEBUG msg=\"waiting for an engine\""},
		"unavailable":    {fmt.Errorf("read: %w", domain.ErrUnavailable), firstRetry, firstRetry, "level=WARN"},
		"any other":      {errors.New("no such column"), firstRetry, firstRetry, "level=ERROR"},
		"parent is gone": {domain.ErrMissingParent, firstRetry, firstRetry, "level=ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controller, out := newController(t, "debug", func(context.Context, fairq.Key) error { return c.outcome })
			got, err := controller.Reconcile(t.Context(), key)
			if err != nil {
				t.Errorf("the controller gets %v, and would log and retry in its own way", err)
			}
			if got.RequeueAfter < c.first || got.RequeueAfter > c.last {
				t.Errorf("again after %s; want between %s and %s", got.RequeueAfter, c.first, c.last)
			}
			switch {
			case c.logged == "" && out.Len() > 0:
				t.Errorf("logged:\n%s", out)
			case !strings.Contains(out.String(), c.logged):
				t.Errorf("logged:\n%s\nwant %s", out, c.logged)
			case c.logged != "" && !strings.Contains(out.String(), "namespace=team-a name=shop"):
				t.Errorf("the line does not say what it is about:\n%s", out)
			}
		})
	}
}

// What stays away is asked for less and less often, up to a bound; once it
// answers, the next fault starts from the beginning.
func TestRetriesBackOffAndStartAgain(t *testing.T) {
	t.Parallel()
	outcome := domain.ErrUnavailable
	controller, _ := newController(t, "error", func(context.Context, fairq.Key) error { return outcome })
	wait := func(k fairq.Key) time.Duration {
		got, err := controller.Reconcile(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		return got.RequeueAfter
	}
	want := firstRetry
	for range 20 {
		if got := wait(key); got != want {
			t.Fatalf("again after %s; want %s", got, want)
		}
		want = min(2*want, lastRetry)
	}
	other := fairq.Key{Workspace: "team-b", Application: "shop", Runner: fairq.RunnerDeployment}
	if got := wait(other); got != firstRetry {
		t.Errorf("another tenant waits %s because of it", got)
	}
	outcome = nil
	if got := wait(key); got != 0 {
		t.Errorf("again after %s although it is done", got)
	}
	outcome = domain.ErrUnavailable
	if got := wait(key); got != firstRetry {
		t.Errorf("the next fault waits %s; want %s", got, firstRetry)
	}
}

// A process that stops does not call its own end an error.
func TestStoppingIsNoOutcome(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	controller, out := newController(t, "debug", func(ctx context.Context, _ fairq.Key) error {
		stop()
		<-ctx.Done()
		return fmt.Errorf("read: %w", ctx.Err())
	})
	if got, err := controller.Reconcile(ctx, key); err != nil || got != (reconcile.Result{}) || out.Len() > 0 {
		t.Errorf("got %+v, %v, logged %q", got, err, out)
	}
}

// A step that hangs gives its tenant's turn back and is tried again.
func TestAStepThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	controller, out := newController(t, "debug", func(ctx context.Context, _ fairq.Key) error {
		<-ctx.Done()
		return ctx.Err()
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got, err := controller.Reconcile(t.Context(), key)
		if took := time.Since(start); err != nil || took != stepDeadline || got.RequeueAfter != firstRetry {
			t.Errorf("ended after %s, again after %s, %v", took, got.RequeueAfter, err)
		}
	})
	if !strings.Contains(out.String(), "level=ERROR") {
		t.Errorf("logged:\n%s", out)
	}
}

func TestConflictsWithoutEndBackOff(t *testing.T) {
	t.Parallel()
	controller, _ := newController(t, "error", func(context.Context, fairq.Key) error { return domain.ErrConflict })
	var last time.Duration
	for range 50 {
		got, err := controller.Reconcile(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		last = got.RequeueAfter
	}
	if last < time.Second {
		t.Errorf("after 50 conflicts in a row the next try comes after %s", last)
	}
}
