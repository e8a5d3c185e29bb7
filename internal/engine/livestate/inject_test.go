// SPDX-License-Identifier: Apache-2.0

package livestate_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-gitops/weir/internal/engine/livestate"
)

// faults stands between a cache and the API server.
type faults struct {
	next http.RoundTripper

	mu sync.Mutex
	// answer gives an error to answer with, or nil to pass the request on.
	answer func(path string, query url.Values) *apierrors.StatusError
	asked  []string
}

func (f *faults) wrap(next http.RoundTripper) http.RoundTripper { f.next = next; return f }

// RoundTrip passes a request on, or answers it.
func (f *faults) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	what := "list"
	switch {
	case query.Get("sendInitialEvents") == "true":
		what = "stream"
	case query.Get("watch") != "":
		what = "watch"
	}
	f.mu.Lock()
	f.asked = append(f.asked, what+" "+r.URL.Path)
	var status *apierrors.StatusError
	if f.answer != nil {
		status = f.answer(r.URL.Path, query)
	}
	f.mu.Unlock()
	if status == nil {
		return f.next.RoundTrip(r)
	}
	s := status.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(s)
	return &http.Response{
		StatusCode: int(s.Code), Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, err
}

// of gives what was asked about a resource.
func (f *faults) of(resource string) (what []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range f.asked {
		if strings.HasSuffix(text, "/"+resource) {
			what = append(what, strings.Fields(text)[0])
		}
	}
	return what
}

func (f *faults) set(answer func(path string, query url.Values) *apierrors.StatusError) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// A watch that is answered with 410 is followed by a list, which tells of what
// happened and of nothing else; on a real server with streams, and on one without.
func TestExpiredWatch(t *testing.T) {
	for name, streams := range map[string]bool{"streams": true, "pages": false} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			f := &faults{}
			b.config.Wrap(f.wrap)
			noStreams := func(query url.Values) *apierrors.StatusError {
				if !streams && query.Get("sendInitialEvents") != "" {
					return apierrors.NewInvalid(schema.GroupKind{}, "", nil)
				}
				return nil
			}
			f.set(func(_ string, query url.Values) *apierrors.StatusError { return noStreams(query) })
			b.configMap("kept")
			b.configMap("gone")
			b.run(livestate.Settings{Filter: livestate.ResourcesAPIFilter{ResourceInclusions: []livestate.ResourceFilter{{Kinds: []string{"ConfigMap"}}}}})
			first := map[bool][]string{true: {"stream"}, false: {"stream", "list", "watch"}}[streams]
			eventually(t, "the first watch", func() bool { return slices.Equal(f.of("configmaps"), first) })

			expired := false
			f.set(func(path string, query url.Values) *apierrors.StatusError {
				// A watch that follows on is refused once.
				if strings.HasSuffix(path, "/configmaps") && query.Get("watch") != "" && query.Get("resourceVersion") != "" && !expired {
					expired = true
					return apierrors.NewResourceExpired("the version is too old")
				}
				return noStreams(query)
			})
			b.proxy.setDeaf(true)
			b.proxy.cut()
			b.delete("v1", "configmaps", b.ns, "gone")
			b.configMap("new")
			b.proxy.setDeaf(false)
			eventually(t, "the outcome", func() bool {
				return b.has(b.id("ConfigMap", "new")) && !b.has(b.id("ConfigMap", "gone"))
			})
			for name, want := range map[string][]string{"kept": {"created "}, "gone": {"created ", "deleted"}, "new": {"created "}} {
				if got := b.log.of(b.id("ConfigMap", name)); !slices.Equal(got, want) {
					t.Errorf("%s: told %q, want %q", name, got, want)
				}
			}
			asked := f.of("configmaps")
			again := map[bool]string{true: "stream", false: "list"}[streams]
			if !slices.Contains(asked[len(first):], "watch") || !slices.Contains(asked[len(first):], again) {
				t.Errorf("asked %q: no watch that follows on and no second list", asked)
			}
		})
	}
}
