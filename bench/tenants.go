// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/bench/rig"
	"github.com/weir-gitops/weir/internal/domain"
)

// created is a deployment and when what happened to it.
type created struct {
	cr                   *v1alpha1.GitOpsDeployment
	sent, answered, seen time.Time
}

// latency is from just before the request until the Application was seen.
func (c created) latency() time.Duration { return c.seen.Sub(c.sent) }

// application is the name of the engine's Application.
func (c created) application() string {
	return domain.EngineApplicationName(domain.ApplicationID(c.cr.UID))
}

// tenants makes namespaces with a user each. They come to rest before they are used, because a
// tenant's namespace is rarely a moment old.
func (b *bench) tenants(ctx context.Context, names ...string) error {
	for _, name := range names {
		tenant, err := b.rig.AddTenant(ctx, name)
		if err != nil {
			return err
		}
		b.clients[name] = tenant
	}
	return rig.Pause(ctx, time.Second)
}

// pathOf is the unique path by which a deployment's Application is recognised.
func pathOf(namespace, name string) string { return "bench/" + namespace + "/" + name }

func deployment(namespace, name string) *v1alpha1.GitOpsDeployment {
	return &v1alpha1.GitOpsDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.GitOpsDeploymentSpec{
			Source: v1alpha1.ApplicationSource{
				RepoURL: "https://git.example.com/bench/app.git", Path: pathOf(namespace, name), TargetRevision: "main",
			},
			Type: v1alpha1.DeploymentTypeAutomated,
		},
	}
}

// create creates a deployment and waits until its Application is seen.
func (b *bench) create(ctx context.Context, cr *v1alpha1.GitOpsDeployment) (created, error) {
	seen := b.rig.Board.Expect(rig.ApplicationWith(cr.Spec.Source.Path))
	c := created{cr: cr, sent: time.Now()}
	if err := b.clients[cr.Namespace].Create(ctx, cr); err != nil {
		return c, fmt.Errorf("create a GitOpsDeployment: %w", err)
	}
	c.answered = time.Now()
	var err error
	c.seen, err = seen.Wait(ctx)
	return c, err
}

// createOneByOne creates deployments in a namespace, each after the former's
// Application was seen.
func (b *bench) createOneByOne(ctx context.Context, namespace, prefix string, n int) ([]created, error) {
	all := make([]created, 0, n)
	for i := range n {
		c, err := b.create(ctx, deployment(namespace, fmt.Sprintf("%s-%d", prefix, i)))
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}

// createAtOnce creates deployments with many writers, none of whom waits for an
// Application. It returns when all have been seen.
func (b *bench) createAtOnce(ctx context.Context, crs []*v1alpha1.GitOpsDeployment) ([]created, error) {
	all := make([]created, len(crs))
	seen := make([]*rig.Sighting, len(crs))
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(b.sizes.writers)
	for i, cr := range crs {
		seen[i] = b.rig.Board.Expect(rig.ApplicationWith(cr.Spec.Source.Path))
		group.Go(func() error {
			all[i] = created{cr: cr, sent: time.Now()}
			err := b.clients[cr.Namespace].Create(writing, cr)
			all[i].answered = time.Now()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("create GitOpsDeployments: %w", err)
	}
	for i := range all {
		var err error
		if all[i].seen, err = seen[i].Wait(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// remove deletes deployments and waits until their Applications are gone.
func (b *bench) remove(ctx context.Context, all []created) error {
	gone := make([]*rig.Sighting, len(all))
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(b.sizes.writers)
	for i, c := range all {
		gone[i] = b.rig.Board.Expect(rig.ApplicationGone(c.application()))
		group.Go(func() error { return b.clients[c.cr.Namespace].Delete(writing, c.cr) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("delete GitOpsDeployments: %w", err)
	}
	_, err := rig.WaitAll(ctx, gone)
	return err
}

// repath points a deployment to another path.
func (b *bench) repath(ctx context.Context, cr *v1alpha1.GitOpsDeployment, path string) error {
	patch := fmt.Appendf(nil, `{"spec":{"source":{"path":%q}}}`, path)
	if err := b.clients[cr.Namespace].Patch(ctx, cr, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("update a GitOpsDeployment: %w", err)
	}
	return nil
}

// settling is how long what follows the last Operation is given: the write of a
// status, and notifications that lead to nothing.
const settling = 150 * time.Millisecond

// rest waits until the roles have nothing left to do: no Operation is there, and
// what follows the removal of the last one has had its time.
func (b *bench) rest(ctx context.Context) error {
	const look, longest = 20 * time.Millisecond, 2 * time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, longest, errNoRest)
	defer cancel()
	for {
		var left operationv1alpha1.OperationList
		err := b.rig.Client.List(ctx, &left, client.InNamespace(rig.EngineNamespace), client.Limit(1))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("look for Operations: %w", err)
		case len(left.Items) == 0:
			return rig.Pause(ctx, settling)
		}
		if err := rig.Pause(ctx, look); err != nil {
			return err
		}
	}
}

var errNoRest = errors.New("the agent has left Operations unfinished for two minutes")

// warmUp has every connection opened and every statement prepared, and leaves
// nothing behind.
func (b *bench) warmUp(ctx context.Context) error {
	const namespace = "bench-warm-up"
	if err := b.tenants(ctx, namespace); err != nil {
		return err
	}
	one, err := b.createOneByOne(ctx, namespace, "one", 5)
	if err != nil {
		return err
	}
	var crs []*v1alpha1.GitOpsDeployment
	for i := range 2 * b.sizes.writers {
		crs = append(crs, deployment(namespace, fmt.Sprintf("many-%d", i)))
	}
	many, err := b.createAtOnce(ctx, crs)
	if err != nil {
		return err
	}
	if err := b.remove(ctx, append(one, many...)); err != nil {
		return err
	}
	return b.rest(ctx)
}
