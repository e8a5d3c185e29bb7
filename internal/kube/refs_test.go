// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/testkit/controlplane"
)

// plane is the test binary's control plane, started by the first that needs it.
var plane struct {
	once    sync.Once
	started *controlplane.Cluster
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if plane.started != nil {
		if err := plane.started.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

const canary = "canary-71c0de"

// watches is a transport that knows which requests are open, and keeps what was
// asked for.
type watches struct {
	next http.RoundTripper

	mu     sync.Mutex
	open   map[string]int
	accept []string
	seen   []string
	got    bytes.Buffer
}

// heard keeps a copy of what came over the wire.
type heard struct {
	io.ReadCloser
	w *watches
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.w.got.Write(p[:n])
	return n, err
}

func (w *watches) RoundTrip(r *http.Request) (*http.Response, error) {
	what := r.URL.Path + "?" + r.URL.Query().Get("fieldSelector")
	w.mu.Lock()
	w.accept = append(w.accept, r.Header.Get("Accept"))
	w.seen = append(w.seen, what)
	w.open[what]++
	w.mu.Unlock()
	context.AfterFunc(r.Context(), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.open[what]--; w.open[what] == 0 {
			delete(w.open, what)
		}
	})
	answer, err := w.next.RoundTrip(r)
	if err == nil {
		answer.Body = heard{answer.Body, w}
	}
	return answer, err
}

func (w *watches) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open)
}

// referring is a References against the real API server, with the calls of changed.
type referring struct {
	*kube.References
	api     client.Client
	watches *watches
	changes chan string
	stop    context.CancelFunc
	ctx     context.Context
}

func newReferring(t *testing.T, namespace string) *referring {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	plane.once.Do(func() { plane.started, plane.err = controlplane.Start(context.WithoutCancel(t.Context())) })
	if plane.err != nil {
		t.Fatal(plane.err)
	}
	r := &referring{watches: &watches{open: map[string]int{}}, changes: make(chan string, 1000)}
	var err error
	if r.api, err = client.New(plane.started.Config, client.Options{Scheme: kube.NewScheme()}); err != nil {
		t.Fatal(err)
	}
	if err := r.api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(plane.started.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		r.watches.next = next
		return r.watches
	})
	r.References, err = kube.NewReferences(config, slog.New(slog.DiscardHandler), func(namespace, name string) { r.changes <- namespace + "/" + name })
	if err != nil {
		t.Fatal(err)
	}
	r.ctx, r.stop = context.WithCancel(t.Context())
	t.Cleanup(func() {
		r.stop()
		r.Wait()
	})
	return r
}

// next waits for a call of changed.
func (r *referring) next(t *testing.T) string {
	t.Helper()
	select {
	case change := <-r.changes:
		return change
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was reported")
		return ""
	}
}

// noneBefore waits until every call of changed that is on its way must have come: a
// change of a Secret that is watched, made later, has been reported.
func (r *referring) noneBefore(t *testing.T, want string) {
	t.Helper()
	if got := r.next(t); got != want {
		t.Errorf("%s was reported; want %s", got, want)
	}
}

func (r *referring) secret(namespace, name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"password": value}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReferencesReportWhatHappensToASecret(t *testing.T) {
	r := newReferring(t, "refs-report")
	r.Refer(r.ctx, "a", "refs-report", "watched")
	r.noneBefore(t, "refs-report/watched") // the beginning of the watch
	s := r.secret("refs-report", "watched", canary)
	must(t, r.api.Create(t.Context(), s))
	r.noneBefore(t, "refs-report/watched")

	other := r.secret("refs-report", "other", "x")
	must(t, r.api.Create(t.Context(), other))
	other.StringData = map[string]string{"password": "y"}
	must(t, r.api.Update(t.Context(), other))
	must(t, r.api.Delete(t.Context(), other))

	s.StringData = map[string]string{"password": "two"}
	must(t, r.api.Update(t.Context(), s))
	r.noneBefore(t, "refs-report/watched")
	must(t, r.api.Delete(t.Context(), s))
	r.noneBefore(t, "refs-report/watched")
	if len(r.changes) != 0 {
		t.Errorf("%d more reports than changes", len(r.changes))
	}

	r.watches.mu.Lock()
	defer r.watches.mu.Unlock()
	for _, seen := range r.watches.seen {
		if seen != "/api/v1/namespaces/refs-report/secrets?metadata.name=watched" {
			t.Errorf("asked for %s", seen)
		}
	}
	for _, accept := range r.watches.accept {
		if first, _, _ := strings.Cut(accept, ","); !strings.Contains(first, "as=PartialObjectMetadata") {
			t.Errorf("asks for %q first, which is more than metadata", first)
		}
	}
	for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
		if bytes.Contains(r.watches.got.Bytes(), []byte(form)) {
			t.Error("the contents of the Secret came over the wire")
		}
	}
	if !bytes.Contains(r.watches.got.Bytes(), []byte("PartialObjectMetadata")) {
		t.Error("nothing was heard of the Secret")
	}
}

func TestReferencesShareAWatchAndReleaseIt(t *testing.T) {
	r := newReferring(t, "refs-share")
	r.Refer(r.ctx, "a", "refs-share", "s")
	r.next(t)
	r.Refer(r.ctx, "b", "refs-share", "s")
	r.Refer(r.ctx, "b", "refs-share", "s")
	got := r.Referrers("refs-share", "s")
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("referrers %v", got)
	}
	r.Release("a")
	r.Release("a")
	must(t, r.api.Create(t.Context(), r.secret("refs-share", "s", "x")))
	r.noneBefore(t, "refs-share/s")
	if n := r.watches.count(); n != 1 || len(r.watches.seen) != 1 {
		t.Errorf("%d watches are open, %d were begun; want one", n, len(r.watches.seen))
	}
	r.Release("b")
	r.Release("nobody")
	// No context has ended: the release alone ends the watch and its goroutine.
	r.Wait()
	if n := r.watches.count(); n != 0 {
		t.Errorf("%d watches are still open", n)
	}
	if left := r.Referrers("refs-share", "s"); len(left) != 0 {
		t.Errorf("referrers %v", left)
	}
}

func TestAReferrerThatRefersToAnother(t *testing.T) {
	r := newReferring(t, "refs-move")
	r.Refer(r.ctx, "a", "refs-move", "old")
	r.noneBefore(t, "refs-move/old")
	r.Refer(r.ctx, "a", "refs-move", "new")
	r.noneBefore(t, "refs-move/new")
	must(t, r.api.Create(t.Context(), r.secret("refs-move", "old", "x")))
	must(t, r.api.Create(t.Context(), r.secret("refs-move", "new", "x")))
	r.noneBefore(t, "refs-move/new")
	if left := r.Referrers("refs-move", "old"); len(left) != 0 {
		t.Errorf("referrers of the old one: %v", left)
	}
	r.stop()
	r.Wait()
	if n := r.watches.count(); n != 0 {
		t.Errorf("%d watches outlive the context", n)
	}
}
