// SPDX-License-Identifier: Apache-2.0

// Package testkit is what tests of several packages share: builders of tenants'
// resources, and waiting on real servers. The servers themselves are in its
// sub-packages.
package testkit

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// Modify changes a resource that a builder makes.
type Modify func(*v1alpha1.GitOpsDeployment)

// Deployment builds a valid, automated GitOpsDeployment.
func Deployment(namespace, name string, modify ...Modify) *v1alpha1.GitOpsDeployment {
	d := &v1alpha1.GitOpsDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.GitOpsDeploymentSpec{
			Source: v1alpha1.ApplicationSource{RepoURL: "https://git.example.com/team/shop", Path: "deploy"},
			Type:   v1alpha1.DeploymentTypeAutomated,
		},
	}
	for _, m := range modify {
		m(d)
	}
	return d
}

// WithRepo sets the repository.
func WithRepo(url string) Modify {
	return func(d *v1alpha1.GitOpsDeployment) { d.Spec.Source.RepoURL = url }
}

// WithPath sets the path.
func WithPath(p string) Modify {
	return func(d *v1alpha1.GitOpsDeployment) { d.Spec.Source.Path = p }
}

// WithFinalizer sets finalizers.
func WithFinalizer(names ...string) Modify {
	return func(d *v1alpha1.GitOpsDeployment) { d.Finalizers = append(d.Finalizers, names...) }
}

// WithDestination sets environment and namespace.
func WithDestination(environment, namespace string) Modify {
	return func(d *v1alpha1.GitOpsDeployment) {
		d.Spec.Destination = v1alpha1.ApplicationDestination{Environment: environment, Namespace: namespace}
	}
}

// Patience is how long Eventually waits for a real server.
const Patience = 30 * time.Second

// Eventually waits until a look at a real server shows what is wanted. The look
// returns "" when it does, and otherwise what it saw instead.
func Eventually(t testing.TB, what string, look func() string) {
	t.Helper()
	EventuallyWithin(t, Patience, what, look)
}

// EventuallyWithin is Eventually with another patience.
func EventuallyWithin(t testing.TB, patience time.Duration, what string, look func() string) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		saw := look()
		if saw == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: not within %s; at last: %s", what, patience, saw)
		case <-tick.C:
		}
	}
}

// Steadily fails if a look shows something else within the time: for what must
// not happen.
func Steadily(t testing.TB, during time.Duration, what string, look func() string) {
	t.Helper()
	deadline := time.After(during)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if saw := look(); saw != "" {
			t.Fatalf("%s: %s", what, saw)
		}
		select {
		case <-deadline:
			return
		case <-tick.C:
		}
	}
}
