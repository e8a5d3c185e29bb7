// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

// cluster is an API server with one deployment, which counts status writes and
// can refuse the next one.
type cluster struct {
	client.Client
	writes  int
	NextErr error
}

func newCluster(t *testing.T, crs ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &cluster{}
	c.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(crs...).WithStatusSubresource(crs...).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, to client.Client, name string, o client.Object, options ...client.SubResourceUpdateOption) error {
				c.writes++
				if err := c.NextErr; err != nil {
					c.NextErr = nil
					return err
				}
				return to.SubResource(name).Update(ctx, o, options...)
			},
		}).Build()
	return c
}

func (c *cluster) read(t *testing.T) *v1alpha1.GitOpsDeployment {
	t.Helper()
	cr := &v1alpha1.GitOpsDeployment{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment()), cr); err != nil {
		t.Fatal(err)
	}
	return cr
}

func (c *cluster) shower(now time.Time) *Deployments {
	return &Deployments{Client: c.Status(), Now: func() time.Time { return now }}
}

func TestShowWritesOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	c := newCluster(t, deployment())
	cr := c.read(t)
	for _, now := range []time.Time{monday, monday.Add(time.Millisecond), tuesday} {
		if err := c.shower(now).Show(t.Context(), cr, chain(reporting()), nil); err != nil {
			t.Fatal(err)
		}
		// As after a restart: the copy comes from the API server.
		if err := c.shower(now).Show(t.Context(), c.read(t), chain(reporting()), nil); err != nil {
			t.Fatal(err)
		}
	}
	if c.writes != 1 {
		t.Errorf("%d writes; want 1", c.writes)
	}
	if diff := cmp.Diff(reported(""), c.read(t).Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A copy that was shown once can be shown again: it carries the version that
// the write made.
func TestShowTwiceWithOneCopy(t *testing.T) {
	t.Parallel()
	c := newCluster(t, deployment())
	cr := c.read(t)
	verdicts := []error{&domain.Waiting{For: "the engine"}, nil}
	for _, verdict := range verdicts {
		if err := c.shower(tuesday).Show(t.Context(), cr, chain(), verdict); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(unreported(resolved(v1alpha1.ConditionErrorOccurred, tuesday)), c.read(t).Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestShowOnAnOldCopyIsAConflict(t *testing.T) {
	t.Parallel()
	c := newCluster(t, deployment())
	old := c.read(t)
	if err := c.shower(monday).Show(t.Context(), c.read(t), chain(reporting()), nil); err != nil {
		t.Fatal(err)
	}
	before := old.DeepCopy()
	if err := c.shower(tuesday).Show(t.Context(), old, chain(), nil); !errors.Is(err, domain.ErrConflict) {
		t.Errorf("got %v; want a conflict", err)
	}
	if diff := cmp.Diff(reported(""), c.read(t).Status); diff != "" {
		t.Errorf("the newer status was overwritten:\n%s", diff)
	}
	if diff := cmp.Diff(before, old); diff != "" {
		t.Errorf("the caller's copy shows what was not written:\n%s", diff)
	}
}

func TestShowMapsTheAPIServersAnswers(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "gitopsdeployments"}
	away := apierrors.NewServiceUnavailable("later")
	for name, c := range map[string]struct {
		answer, want error
	}{
		"changed since": {apierrors.NewConflict(resource, "shop", errors.New("changed")), domain.ErrConflict},
		"gone":          {apierrors.NewNotFound(resource, "shop"), nil},
		"away":          {away, away},
		"no answer":     {context.DeadlineExceeded, context.DeadlineExceeded},
		"another error": {errors.ErrUnsupported, errors.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t, deployment())
			cluster.NextErr = c.answer
			err := cluster.shower(tuesday).Show(t.Context(), cluster.read(t), chain(), nil)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v; want %v", err, c.want)
			}
		})
	}
}

func TestShowDoesNotWriteWhatItCannotRead(t *testing.T) {
	t.Parallel()
	c := newCluster(t, deployment())
	damaged := chain(reporting())
	damaged.State.Detail.History = []byte(`7`)
	if c.shower(tuesday).Show(t.Context(), c.read(t), damaged, nil) == nil {
		t.Error("a damaged row is shown")
	}
	if c.writes != 0 {
		t.Errorf("%d writes; want none", c.writes)
	}
}
