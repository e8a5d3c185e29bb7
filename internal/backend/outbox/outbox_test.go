// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// fakeStore holds operation rows and the instances they may be for.
type fakeStore struct {
	store.Engines
	instances map[domain.InstanceID]string
	rows      map[domain.OperationID]store.Operation
	calls     []string
	NextErr   error
	// pages are the sizes of the pages that were asked for and given.
	pages []int
}

func (s *fakeStore) called(method string) error {
	s.calls = append(s.calls, method)
	err := s.NextErr
	s.NextErr = nil
	return err
}

func (s *fakeStore) Instances(context.Context) ([]store.Instance, error) {
	if err := s.called("Instances"); err != nil {
		return nil, err
	}
	var out []store.Instance
	for id, namespace := range s.instances {
		out = append(out, store.Instance{ID: id, Namespace: namespace})
	}
	return out, nil
}

func (s *fakeStore) Operation(_ context.Context, id domain.OperationID) (store.Operation, error) {
	if err := s.called("Operation"); err != nil {
		return store.Operation{}, err
	}
	row, ok := s.rows[id]
	if !ok {
		return store.Operation{}, domain.ErrNotFound
	}
	return row, nil
}

func (s *fakeStore) Unfinished(_ context.Context, instance domain.InstanceID, after domain.OperationID, limit int) ([]store.Operation, error) {
	if err := s.called("Unfinished"); err != nil {
		return nil, err
	}
	var out []store.Operation
	for _, row := range s.rows {
		if row.ID > after && !row.State.Final() && (instance == "" || row.Instance == instance) {
			out = append(out, row)
		}
	}
	slices.SortFunc(out, func(a, b store.Operation) int { return cmp.Compare(a.ID, b.ID) })
	out = out[:min(limit, len(out))]
	s.pages = append(s.pages, len(out))
	return out, nil
}

// world is an outbox with its database and its API server.
type world struct {
	*Outbox
	store *fakeStore
	log   *strings.Builder
	// creates counts requests; NextErr refuses the next one; with countOnly they
	// go no further than that.
	creates   int
	NextErr   error
	countOnly bool
}

func newWorld(t *testing.T, rows ...store.Operation) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := operationv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{log: &strings.Builder{}, store: &fakeStore{
		instances: map[domain.InstanceID]string{"engine-1": "argocd", "engine-2": "argocd-two"},
		rows:      map[domain.OperationID]store.Operation{},
	}}
	for _, row := range rows {
		w.store.rows[row.ID] = row
	}
	w.Outbox = &Outbox{
		Store: w.store, Log: slog.New(slog.NewTextHandler(w.log, nil)),
		Client: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
				w.creates++
				if err := w.NextErr; err != nil {
					w.NextErr = nil
					return err
				}
				if w.countOnly {
					return nil
				}
				return to.Create(ctx, o, options...)
			},
		}).Build(),
	}
	return w
}

// names are the Operation CRs that exist, as namespace/name.
func (w *world) names(t *testing.T) []string {
	t.Helper()
	var list operationv1alpha1.OperationList
	if err := w.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, cr := range list.Items {
		out = append(out, cr.Namespace+"/"+cr.Name)
	}
	slices.Sort(out)
	return out
}

func expect[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

type rowOption func(*store.Operation)

// row is a waiting operation on application uid-a of tenant-a for engine-1.
func row(id string, options ...rowOption) store.Operation {
	op := store.Operation{
		ID: domain.OperationID(id), Tenant: "tenant-a", Instance: "engine-1",
		ResourceType: domain.ResourceApplication, ResourceID: "uid-a", State: domain.OperationWaiting, Version: 1,
	}
	for _, o := range options {
		o(&op)
	}
	return op
}

func on(i domain.InstanceID) rowOption { return func(op *store.Operation) { op.Instance = i } }

func inState(s domain.OperationState) rowOption { return func(op *store.Operation) { op.State = s } }

func TestAnnounceCreatesTheOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.Announce(t.Context(), row("1", on("engine-2"))); err != nil {
		t.Fatal(err)
	}
	got := &operationv1alpha1.Operation{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "argocd-two", Name: "operation-1"}, got); err != nil {
		t.Fatal(err)
	}
	expect(t, "spec", operationv1alpha1.OperationSpec{OperationID: "1"}, got.Spec)
	expect(t, "labels", map[string]string{
		operationv1alpha1.TenantLabel:       "tenant-a",
		operationv1alpha1.ResourceTypeLabel: "Application",
		operationv1alpha1.ResourceLabel:     "uid-a",
	}, got.Labels)
}

func TestAnnounceAgainCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		if err := w.Announce(t.Context(), row("1")); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "requests", 1, w.creates)
	expect(t, "reads of the instances", []string{"Instances"}, w.store.calls)
}

// Another process, or this one before it crashed, may have been there first.
func TestAnnounceWhatIsThereAlready(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs := &operationv1alpha1.Operation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "operation-1"},
		Spec:       operationv1alpha1.OperationSpec{OperationID: "1"},
	}
	if err := w.Client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if err := w.Announce(t.Context(), row("1")); err != nil {
		t.Errorf("an Operation that exists is no error: %v", err)
	}
	if !w.announced.Has("1") {
		t.Error("it will be tried again")
	}
}

func TestAFailedAnnouncementIsNotRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.NextErr = errors.New("API server is away")
	if err := w.Announce(t.Context(), row("1")); err == nil {
		t.Fatal("the fault went unnoticed")
	}
	if err := w.Announce(t.Context(), row("1")); err != nil {
		t.Fatal(err)
	}
	expect(t, "operations", []string{"argocd/operation-1"}, w.names(t))
}

func TestAnnounceForAnUnknownInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.Announce(t.Context(), row("1", on("engine-3"))); !errors.Is(err, domain.ErrNotFound) || !strings.Contains(err.Error(), "engine-3") {
		t.Errorf("got %v; want an error that says that engine-3 is not found", err)
	}
	expect(t, "requests", 0, w.creates)

	w.store.instances["engine-3"] = "argocd-three"
	if err := w.Announce(t.Context(), row("1", on("engine-3"))); err != nil {
		t.Errorf("although it has been registered since: %v", err)
	}
	expect(t, "operations", []string{"argocd-three/operation-1"}, w.names(t))
}

func TestAnnounceWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.NextErr = domain.ErrUnavailable
	if err := w.Announce(t.Context(), row("1")); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("got %v; want the database's error", err)
	}
	if err := w.Announce(t.Context(), row("1")); err != nil {
		t.Errorf("once it is back: %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows []store.Operation
		want []string
	}{
		"waits":              {[]store.Operation{row("1")}, []string{"argocd/operation-1"}},
		"is under way":       {[]store.Operation{row("1", inState(domain.OperationInProgress))}, []string{"argocd/operation-1"}},
		"is completed":       {[]store.Operation{row("1", inState(domain.OperationCompleted))}, nil},
		"has failed":         {[]store.Operation{row("1", inState(domain.OperationFailed))}, nil},
		"has been collected": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.rows...)
			if err := w.Check(t.Context(), "1"); err != nil {
				t.Fatal(err)
			}
			expect(t, "operations", c.want, w.names(t))
			expect(t, "said in the log", c.want != nil, strings.Contains(w.log.String(), "outbox"))
		})
	}
}

func TestCheckOfWhatWasJustAnnouncedCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, row("1"))
	if err := w.Announce(t.Context(), row("1")); err != nil {
		t.Fatal(err)
	}
	w.store.calls = nil
	if err := w.Check(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if len(w.store.calls) > 0 || w.creates != 1 {
		t.Errorf("%v in the database and %d requests; want none and 1", w.store.calls, w.creates)
	}
}

func TestCheckWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, row("1"))
	w.store.NextErr = domain.ErrUnavailable
	if err := w.Check(t.Context(), "1"); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("got %v; want the database's error", err)
	}
}

func TestScanAnnouncesWhatIsUnfinishedOnEveryInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, row("1"), row("2", on("engine-2")), row("3", inState(domain.OperationInProgress)),
		row("4", inState(domain.OperationCompleted)), row("5", inState(domain.OperationFailed)))
	if err := w.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, "operations", []string{"argocd-two/operation-2", "argocd/operation-1", "argocd/operation-3"}, w.names(t))
}

// Somebody removed an Operation by hand: what this process remembers of having
// announced it must not keep the scan from doing so again.
func TestScanRestoresARemovedOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, row("1"))
	for range 2 {
		if err := w.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(t, "operations", []string{"argocd/operation-1"}, w.names(t))
		if err := w.Client.DeleteAllOf(t.Context(), &operationv1alpha1.Operation{}, client.InNamespace("argocd")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestScanTurnsPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows  int
		pages []int
	}{
		"none":               {0, []int{0}},
		"one less than full": {scanPage - 1, []int{scanPage - 1}},
		"exactly full":       {scanPage, []int{scanPage, 0}},
		"two and a bit":      {2*scanPage + 1, []int{scanPage, scanPage, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.countOnly = true
			for i := range c.rows {
				w.store.rows[number(i)] = row(string(number(i)))
			}
			if err := w.Scan(t.Context()); err != nil {
				t.Fatal(err)
			}
			expect(t, "pages", c.pages, w.store.pages)
			expect(t, "operations", c.rows, w.creates)
		})
	}
}

func TestScanReportsWhatFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, row("1"))
	w.store.NextErr = domain.ErrUnavailable
	if err := w.Scan(t.Context()); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("got %v; want the database's error", err)
	}
	refused := errors.New("no")
	w.NextErr = refused
	if err := w.Scan(t.Context()); !errors.Is(err, refused) || !strings.Contains(err.Error(), "operation 1") {
		t.Errorf("got %v; want the API server's error, and which operation", err)
	}
	if err := w.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, "operations", []string{"argocd/operation-1"}, w.names(t))
}

func number(i int) domain.OperationID { return domain.OperationID(fmt.Sprintf("op-%06d", i)) }

func TestScanGoesOnAfterAnOperationThatCannotBeAnnounced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, row("1", on("engine-gone")), row("2"))
	if w.Scan(t.Context()) == nil {
		t.Error("the fault went unnoticed")
	}
	expect(t, "operations", []string{"argocd/operation-2"}, w.names(t))
}
