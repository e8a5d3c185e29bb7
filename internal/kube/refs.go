// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// References watches single Secrets, each for as long as somebody refers to it.
//
// The service may read the Secrets that tenants' resources name, and no others.
// One watch over all Secrets would show it every Secret in the cluster; a watch by
// name shows it one, and the API server has an index for just that. What is
// watched is metadata: the contents are read when they are needed, and kept nowhere.
type References struct {
	secrets metadata.Interface
	changed func(namespace, name string)
	log     *slog.Logger

	mu      sync.Mutex
	watched map[reference]*referenced
	// referrers are who refers to what: a referrer to one Secret at a time.
	referrers map[string]reference
	wait      sync.WaitGroup
}

type reference struct{ namespace, name string }

type referenced struct {
	count  int
	cancel context.CancelFunc
}

// NewReferences makes it. changed is called whenever a watched Secret has come,
// changed or gone.
func NewReferences(config *rest.Config, log *slog.Logger, changed func(namespace, name string)) (*References, error) {
	secrets, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &References{
		secrets: secrets, changed: changed, log: log,
		watched: map[reference]*referenced{}, referrers: map[string]reference{},
	}, nil
}

// Refer says that a referrer refers to a Secret, and to none other any more. The
// watch lasts until Release or until the context ends.
func (r *References) Refer(ctx context.Context, referrer, namespace, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to := reference{namespace, name}
	if from, refers := r.referrers[referrer]; refers {
		if from == to {
			return
		}
		r.release(from)
	}
	r.referrers[referrer] = to
	if have := r.watched[to]; have != nil {
		have.count++
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	r.watched[to] = &referenced{count: 1, cancel: cancel}
	r.wait.Go(func() { r.follow(ctx, to) })
}

// Release says that a referrer refers to nothing any more.
func (r *References) Release(referrer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if from, refers := r.referrers[referrer]; refers {
		delete(r.referrers, referrer)
		r.release(from)
	}
}

func (r *References) release(from reference) {
	have := r.watched[from]
	if have.count--; have.count == 0 {
		delete(r.watched, from)
		have.cancel()
	}
}

// Referrers lists who refers to a Secret.
func (r *References) Referrers(namespace, name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for referrer, to := range r.referrers {
		if to == (reference{namespace, name}) {
			all = append(all, referrer)
		}
	}
	return all
}

// Wait waits until no watch runs, after its context has ended.
func (r *References) Wait() { r.wait.Wait() }

const (
	watchRetryMin = 100 * time.Millisecond
	watchRetryMax = 30 * time.Second
)

// follow watches one Secret, and watches again whenever a watch has ended.
//
// Nothing is missed in between: a watch begins with what is there now, and so
// with a call of changed. That one more look may be for nothing is all it costs;
// the API server ends watches after some minutes to an hour.
func (r *References) follow(ctx context.Context, to reference) {
	retry := watchRetryMin
	for ctx.Err() == nil {
		began, err := r.watchOnce(ctx, to)
		if err != nil {
			r.log.WarnContext(ctx, "cannot watch a Secret, will try again", "namespace", to.namespace, "name", to.name, "error", err)
		}
		if began {
			retry = watchRetryMin
		}
		timer := time.NewTimer(retry)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
		retry = min(2*retry, watchRetryMax)
	}
}

func (r *References) watchOnce(ctx context.Context, to reference) (began bool, err error) {
	w, err := r.secrets.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(to.namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, to.name).String(),
	})
	if err != nil {
		return false, err
	}
	defer w.Stop()
	// A Secret that went before this watch began sends no event.
	r.changed(to.namespace, to.name)
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case e, open := <-w.ResultChan():
			if !open || e.Type == watch.Error {
				return true, nil
			}
			r.changed(to.namespace, to.name)
		}
	}
}
