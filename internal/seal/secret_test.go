// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/testkit/controlplane"
)

// newClient gives a client of the test binary's control plane.
func newClient(t *testing.T, change func(*rest.Config)) client.Client {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	cluster.once.Do(func() {
		// The test that happens to be first must not end it.
		cluster.started, cluster.err = controlplane.Start(context.WithoutCancel(t.Context()))
	})
	if cluster.err != nil {
		t.Fatal(cluster.err)
	}
	config := rest.CopyConfig(cluster.started.Config)
	if change != nil {
		change(config)
	}
	c, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSecret(t *testing.T) {
	api := newClient(t, nil)
	name := client.ObjectKey{Namespace: "default", Name: "key-ring"}
	s := seal.NewSecret(api, name)
	_, err := s.Load(t.Context())
	wantError(t, "without a Secret", err, seal.ErrNoRing)
	if err == nil || !strings.Contains(err.Error(), "weir keys create --key-ring-secret default/key-ring") {
		t.Errorf("the message %q does not say what to do", err)
	}
	_, err = s.Update(t.Context(), (*seal.Ring).Rotated)
	wantError(t, "updating nothing", err, seal.ErrNoRing)

	ring := newRing(t)
	if err := s.Create(t.Context(), ring); err != nil {
		t.Fatal(err)
	}
	same(t, "the ring", ring.KeyIDs(), load(t, s).KeyIDs())
	wantError(t, "a second Create", s.Create(t.Context(), newRing(t)), seal.ErrRingExists)
	same(t, "the ring is left alone", ring.KeyIDs(), load(t, s).KeyIDs())

	t.Run("changes take turns", func(t *testing.T) {
		var (
			wg   sync.WaitGroup
			errs [3]error
		)
		for i := range errs {
			wg.Go(func() { _, errs[i] = s.Update(t.Context(), (*seal.Ring).Rotated) })
		}
		wg.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		if ids := load(t, s).KeyIDs(); len(ids) != 4 {
			t.Errorf("%d keys, want 4: a change was lost", len(ids))
		}
	})
	t.Run("rotation of a database's keys", func(t *testing.T) {
		db, _ := newSQLite(t)
		old := newSealer(t, s, db)
		check := tenants(t, old, 3)
		r := rotate(t, s, db, seal.RotateOptions{Prune: true})
		same(t, "the ring", []string{r.Primary}, load(t, s).KeyIDs())
		check(old)
		check(newSealer(t, s, db))
	})
	t.Run("a Secret that is there without a ring", func(t *testing.T) {
		empty := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Data: map[string][]byte{"kept": []byte("x")}}
		if err := api.Create(t.Context(), empty); err != nil {
			t.Fatal(err)
		}
		s := seal.NewSecret(api, client.ObjectKeyFromObject(empty))
		_, err := s.Load(t.Context())
		wantError(t, "without a ring in it", err, seal.ErrNoRing)
		if err := s.Create(t.Context(), newRing(t)); err != nil {
			t.Fatal(err)
		}
		load(t, s)
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(empty), empty); err != nil || string(empty.Data["kept"]) != "x" {
			t.Errorf("what was in it is gone: %v", err)
		}
	})
	t.Run("a damaged ring", func(t *testing.T) {
		broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "broken"}, Data: map[string][]byte{seal.SecretKey: []byte("{" + canary)}}
		if err := api.Create(t.Context(), broken); err != nil {
			t.Fatal(err)
		}
		_, err := seal.NewSecret(api, client.ObjectKeyFromObject(broken)).Load(t.Context())
		wantError(t, "loading", err, seal.ErrDamagedRing)
		if err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "default/broken") {
			t.Errorf("the message %q has the contents in it, or does not name the Secret", err)
		}
	})
	t.Run("who may not", func(t *testing.T) {
		stranger := newClient(t, func(c *rest.Config) { c.Impersonate.UserName = "stranger" })
		s := seal.NewSecret(stranger, name)
		_, loading := s.Load(t.Context())
		_, updating := s.Update(t.Context(), (*seal.Ring).Rotated)
		for _, err := range []error{loading, updating, s.Create(t.Context(), newRing(t))} {
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "let the role get it") {
				t.Errorf("%v, want that it is forbidden and what to do", err)
			}
		}
	})
}
