// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

func testLatestOperation(t *testing.T, w world) {
	w.register(t, engine)
	_, err := w.Store.LatestOperation(t.Context(), domain.ResourceApplication, "uid-1")
	wantError(t, "no operation", err, domain.ErrNotFound)
	first := w.create(t, alice, "uid-1")
	w.finish(t, first, domain.OperationCompleted, "")
	second := w.apply(t, updating(w.chain(t, row(alice, "uid-1")).Application, "b"))[0]
	got, err := w.Store.LatestOperation(t.Context(), domain.ResourceApplication, "uid-1")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "latest operation", second, got)
	same(t, "operation in the chain", &second, w.chain(t, row(alice, "uid-1")).Operation)
	_, err = w.Store.LatestOperation(t.Context(), domain.ResourceSyncOperation, "uid-1")
	wantError(t, "another resource type", err, domain.ErrNotFound)
}

func testReuse(t *testing.T, w world) {
	w.register(t, engine)
	first := w.create(t, alice, "uid-1")
	for n, path := range []string{"b", "c", "d"} {
		again := w.apply(t, updating(w.chain(t, row(alice, "uid-1")).Application, path))[0]
		want := first
		want.Version = int64(n + 2)
		same(t, "reused operation", want, again)
	}
	w.finish(t, store.Operation{ID: first.ID, Version: 4}, domain.OperationInProgress, "working")
	next := w.apply(t, updating(w.chain(t, row(alice, "uid-1")).Application, "e"))[0]
	if next.ID == first.ID || next.Version != 1 {
		t.Errorf("an operation in progress was reused: %+v", next)
	}
	if n := w.count(t, "operation"); n != 2 {
		t.Errorf("%d operations, want 2", n)
	}
}

func testReuseIsPerInstance(t *testing.T, w world) {
	w.register(t, engine, "engine-2")
	first := w.create(t, alice, "uid-1")
	a := row(alice, "uid-1")
	a.Instance = "engine-2"
	there := w.apply(t, store.Change{Announce: announcing(a)})[0]
	if there.ID == first.ID || there.Instance != "engine-2" {
		t.Errorf("the operation for the old instance was reused for the new one: %+v", there)
	}
}

func testFinish(t *testing.T, w world) {
	w.register(t, engine)
	ctx := t.Context()
	for _, c := range []struct {
		name string
		from []domain.OperationState
		to   domain.OperationState
		want error
	}{
		{"complete", nil, domain.OperationCompleted, nil},
		{"fail", nil, domain.OperationFailed, nil},
		{"begin", nil, domain.OperationInProgress, nil},
		{"complete what began", []domain.OperationState{domain.OperationInProgress}, domain.OperationCompleted, nil},
		{"complete twice", []domain.OperationState{domain.OperationCompleted}, domain.OperationCompleted, nil},
		{"fail twice", []domain.OperationState{domain.OperationFailed}, domain.OperationFailed, nil},
		{"succeed after failing", []domain.OperationState{domain.OperationFailed}, domain.OperationCompleted, nil},
		{"fail after completing", []domain.OperationState{domain.OperationCompleted}, domain.OperationFailed, domain.ErrConflict},
		{"begin after completing", []domain.OperationState{domain.OperationCompleted}, domain.OperationInProgress, domain.ErrConflict},
		{"begin after failing", []domain.OperationState{domain.OperationFailed}, domain.OperationInProgress, domain.ErrConflict},
	} {
		o := w.apply(t, store.Change{Announce: announcing(row(alice, domain.ApplicationID(c.name)))})[0]
		for _, s := range c.from {
			w.finish(t, o, s, "before")
		}
		err := w.Store.Finish(ctx, o.ID, o.Version, c.to, "why\x00 \xffnot")
		if c.want != nil {
			wantError(t, c.name, err, c.want)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := w.Store.LatestOperation(ctx, o.ResourceType, o.ResourceID)
		if err != nil || got.State != c.to || got.Message != "why\uFFFD \uFFFDnot" {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	o := w.create(t, alice, "uid-1")
	w.apply(t, updating(w.chain(t, row(alice, "uid-1")).Application, "b"))
	err := w.Store.Finish(ctx, o.ID, o.Version, domain.OperationCompleted, "")
	wantError(t, "finishing a reused operation", err, domain.ErrConflict)
	err = w.Store.Finish(ctx, domain.NewOperationID(), 1, domain.OperationCompleted, "")
	wantError(t, "finishing what is not there", err, domain.ErrNotFound)
}

func testTask(t *testing.T, w world) {
	w.register(t, engine)
	ctx := t.Context()
	_, err := w.Store.Task(ctx, domain.ResourceApplication, domain.NewOperationID())
	wantError(t, "no operation", err, domain.ErrNotFound)

	o := w.create(t, alice, "uid-1")
	a := row(alice, "uid-1")
	a.Version = 1
	task, err := w.Store.Task(ctx, domain.ResourceApplication, o.ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "task", store.Task{Operation: o, Application: &a}, task)

	// The application's id under another resource type is not the application.
	other := announcing(a)
	other[0].ResourceType = domain.ResourceSyncOperation
	o = w.apply(t, store.Change{Announce: other})[0]
	if task, err := w.Store.Task(ctx, domain.ResourceApplication, o.ID); err != nil || task.Application != nil {
		t.Errorf("task of another resource type: %+v, %v", task, err)
	}

	// An operation with a wrong tenant must not read as "the application is gone".
	w.exec(t, `UPDATE operation SET tenant = 'bob-uid'`)
	latest, err := w.Store.LatestOperation(ctx, domain.ResourceApplication, "uid-1")
	if err != nil {
		t.Fatal(err)
	}
	if task, err := w.Store.Task(ctx, domain.ResourceApplication, latest.ID); err != nil || task.Application == nil || task.Application.Tenant != alice {
		t.Errorf("task of an operation with a wrong tenant: %+v, %v", task, err)
	}
}

func testUnfinished(t *testing.T, w world) {
	w.register(t, engine, "engine-2")
	var want []domain.OperationID
	for n := range 7 {
		a := row(alice, id(n))
		if n == 3 {
			a.Instance = "engine-2"
		}
		o := w.apply(t, store.Change{Announce: announcing(a)})[0]
		switch n {
		case 1:
			w.finish(t, o, domain.OperationCompleted, "")
		case 2:
			w.finish(t, o, domain.OperationFailed, "no")
		case 4:
			w.finish(t, o, domain.OperationInProgress, "")
			want = append(want, o.ID)
		default:
			want = append(want, o.ID)
		}
	}
	pages := func(instance domain.InstanceID) (got []domain.OperationID) {
		var after domain.OperationID
		for {
			page, err := w.Store.Unfinished(t.Context(), instance, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				return got
			}
			for _, o := range page {
				got = append(got, o.ID)
			}
			after = got[len(got)-1]
		}
	}
	same(t, "all instances", want, pages(""))
	same(t, "the other instance", want[1:2], pages("engine-2"))
	same(t, "this instance", slices.Delete(slices.Clone(want), 1, 2), pages(engine))
}

func testCollect(t *testing.T, w world) {
	w.register(t, engine)
	ctx := t.Context()
	end := func(resource domain.ApplicationID, s domain.OperationState) domain.OperationID {
		o := w.apply(t, store.Change{Announce: announcing(row(alice, resource))})[0]
		if s != domain.OperationWaiting {
			w.finish(t, o, s, "")
		}
		return o.ID
	}
	end("done", domain.OperationCompleted)
	end("failed then done", domain.OperationFailed)
	end("failed then done", domain.OperationCompleted)
	end("failed twice", domain.OperationFailed)
	kept := []domain.OperationID{
		end("failed twice", domain.OperationFailed),
		end("working", domain.OperationInProgress),
		end("waiting", domain.OperationWaiting),
	}
	for resource, until := range map[domain.ApplicationID]time.Duration{"kept for longer": time.Hour, "kept long enough": -time.Hour} {
		o := end(resource, domain.OperationCompleted)
		w.exec(t, `UPDATE operation SET gc_expiration = $1 WHERE id = $2`, w.Time(time.Now().Add(until)), string(o))
		if until > 0 {
			kept = append(kept, o)
		}
	}

	if n, err := w.Store.Collect(ctx, time.Now().Add(-time.Hour), 100); err != nil || n != 0 {
		t.Errorf("collected %d that ended just now, %v", n, err)
	}
	later := time.Now().Add(time.Hour)
	if n, err := w.Store.Collect(ctx, later, 1); err != nil || n != 1 {
		t.Errorf("collected %d with a limit of 1, %v", n, err)
	}
	total := 1
	for range 10 {
		n, err := w.Store.Collect(ctx, later, 2)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if total != 5 {
		t.Errorf("collected %d, want 5", total)
	}
	for _, o := range kept {
		if _, err := w.Store.Task(ctx, domain.ResourceApplication, o); err != nil {
			t.Errorf("an operation that is still needed is gone: %v", err)
		}
	}
}
