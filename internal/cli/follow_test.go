// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// script is an API server that plays answers one after the other: it injects
// what a real one does only on bad days.
type script struct {
	client.WithWatch
	lists   [][]v1alpha1.GitOpsDeployment
	listErr map[int]error
	watches []func(*watch.FakeWatcher)
	listed  int
	watched atomic.Int32
}

func (s *script) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	n := s.listed
	s.listed++
	if err := s.listErr[n]; err != nil {
		return err
	}
	list.(*v1alpha1.GitOpsDeploymentList).Items = s.lists[min(n, len(s.lists)-1)]
	return nil
}

func (s *script) Watch(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
	n := int(s.watched.Add(1)) - 1
	w := watch.NewFake()
	go func() {
		if n < len(s.watches) {
			s.watches[n](w)
			w.Stop()
			return
		}
		<-ctx.Done()
		w.Stop()
	}()
	return w, nil
}

func at(name, version string) v1alpha1.GitOpsDeployment {
	return v1alpha1.GitOpsDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version}}
}

func TestFollowLosesNothingWhenWatchesEnd(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // other tests keep connections open
	synctest.Test(t, func(t *testing.T) {
		api := &script{
			lists: [][]v1alpha1.GitOpsDeployment{
				{at("a", "1"), at("b", "1")},
				{at("a", "2")}, // b was deleted while nobody watched
				{at("a", "2")}, // after an error: nothing new
				{at("a", "2"), at("c", "9")},
			},
			listErr: map[int]error{2: errors.New("connection refused")},
			watches: []func(*watch.FakeWatcher){
				func(w *watch.FakeWatcher) { o := at("a", "2"); w.Modify(&o) },
				func(w *watch.FakeWatcher) { w.Error(&metav1.Status{Reason: metav1.StatusReasonExpired}) },
			},
		}
		var got []string
		lost := 0
		f := &follower{
			session: &session{api: api}, kind: deployments(),
			each: func(changes []change) (bool, error) {
				for _, c := range changes {
					text := c.object.GetName() + "@" + c.object.GetResourceVersion()
					if c.deleted {
						text += " deleted"
					}
					got = append(got, text)
				}
				return slices.Contains(got, "c@9"), nil
			},
			lost: func(error) { lost++ },
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := f.run(ctx); err != nil {
			t.Fatal(err)
		}
		if want := []string{"a@1", "b@1", "a@2", "b@1 deleted", "c@9"}; !slices.Equal(got, want) {
			t.Errorf("handed on %v, want %v", got, want)
		}
		if lost != 1 {
			t.Errorf("told %d times of a broken connection", lost)
		}
	})
}

func TestFollowGivesUpWhereTryingAgainCannotHelp(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)
	mine := errors.New("mine")
	for _, test := range []struct {
		name string
		api  *script
		each error
	}{
		{name: "the first list fails", api: &script{listErr: map[int]error{0: errors.New("connection refused")}}},
		{name: "forbidden later", api: &script{lists: [][]v1alpha1.GitOpsDeployment{nil}, listErr: map[int]error{1: forbidden}, watches: []func(*watch.FakeWatcher){func(*watch.FakeWatcher) {}}}},
		{name: "the caller fails", api: &script{lists: [][]v1alpha1.GitOpsDeployment{{at("a", "1")}}}, each: mine},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &follower{session: &session{api: &reviewing{test.api}}, kind: deployments(), each: func([]change) (bool, error) { return false, test.each }}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := f.run(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) || test.each != nil && !errors.Is(err, mine) {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
}

// reviewing denies every permission that it is asked about.
type reviewing struct{ *script }

func (reviewing) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }
