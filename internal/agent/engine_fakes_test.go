// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
)

const appName = "gitopsdepl-0b8d8b0e-6f4e-4d0f-9a53-2d6f7f0a9d11"

var applications = schema.GroupResource{Group: "argoproj.io", Resource: "applications"}

// server is an API server that holds Applications, with one version for all of
// them that grows with each write, as real ones have.
type server struct {
	client.Client
	apps    map[string]*argov1alpha1.Application
	version uint64
	reads   int
	NextErr error
}

func (s *server) fails() error {
	err := s.NextErr
	s.NextErr = nil
	return err
}

func (s *server) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.reads++
	return copyOf(s.apps[key.Name], key.Name, o)
}

func copyOf(app *argov1alpha1.Application, name string, into client.Object) error {
	if app == nil {
		return apierrors.NewNotFound(applications, name)
	}
	app.DeepCopyInto(into.(*argov1alpha1.Application))
	return nil
}

// store keeps a written Application and gives the writer its new version.
func (s *server) store(app *argov1alpha1.Application) {
	s.version++
	app.ResourceVersion = strconv.FormatUint(s.version, 10)
	s.apps[app.Name] = app.DeepCopy()
}

// laggingCache reads what it has caught up with, and writes to the server.
type laggingCache struct {
	*server
	seen map[string]*argov1alpha1.Application
}

func (c *laggingCache) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return copyOf(c.seen[key.Name], key.Name, o)
}

func (c *laggingCache) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if err := c.fails(); err != nil {
		return err
	}
	app := o.(*argov1alpha1.Application)
	if c.apps[app.Name] != nil {
		return apierrors.NewAlreadyExists(applications, app.Name)
	}
	c.version++
	app.UID = types.UID("uid-" + strconv.FormatUint(c.version, 10))
	c.store(app)
	return nil
}

// Patch knows the one patch that the agent sends: a test of the UID and a new
// spec.
func (c *laggingCache) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	if err := c.fails(); err != nil {
		return err
	}
	have := c.apps[o.GetName()]
	if have == nil {
		return apierrors.NewNotFound(applications, o.GetName())
	}
	data, err := p.Data(o)
	if err != nil || p.Type() != types.JSONPatchType {
		return errors.Join(errors.New("not a JSON patch"), err)
	}
	var ops []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(data, &ops); err != nil {
		return err
	}
	after := have.DeepCopy()
	for _, op := range ops {
		switch op.Op + " " + op.Path {
		case "test /metadata/uid":
			if string(op.Value) != strconv.Quote(string(have.UID)) {
				return apierrors.NewGenericServerResponse(422, "patch", applications, have.Name, "test failed", 0, true)
			}
		case "add /metadata/labels":
			after.Labels = nil
			if err := json.Unmarshal(op.Value, &after.Labels); err != nil {
				return err
			}
		case "replace /spec":
			after.Spec = argov1alpha1.ApplicationSpec{}
			if err := json.Unmarshal(op.Value, &after.Spec); err != nil {
				return err
			}
		default:
			return errors.New("unexpected " + op.Op + " " + op.Path)
		}
	}
	c.store(after)
	after.DeepCopyInto(o.(*argov1alpha1.Application))
	return nil
}

func (c *laggingCache) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	if err := c.fails(); err != nil {
		return err
	}
	have := c.apps[o.GetName()]
	switch {
	case have == nil:
		return apierrors.NewNotFound(applications, o.GetName())
	case len(have.Finalizers) == 0:
		delete(c.apps, o.GetName())
	default:
		now := metav1.Now()
		have.DeletionTimestamp = &now
		c.store(have)
	}
	return nil
}

// world is an engine's namespace with a cache that catches up when told to.
type world struct {
	*engineNamespace
	server *server
	cache  *laggingCache
}

func newWorld() *world {
	s := &server{apps: map[string]*argov1alpha1.Application{}, version: 100}
	c := &laggingCache{server: s, seen: map[string]*argov1alpha1.Application{}}
	return &world{engineNamespace: &engineNamespace{namespace: "argocd", cached: c, live: s}, server: s, cache: c}
}

// catchUp has the cache see what the server has, and tells so as the watch does.
func (w *world) catchUp() {
	for name := range w.cache.seen {
		if w.server.apps[name] == nil {
			w.ended(name, version(w.cache.seen[name]))
		}
	}
	clear(w.cache.seen)
	for name, app := range w.server.apps {
		w.cache.seen[name] = app.DeepCopy()
		w.seen(name, version(app))
	}
}

// byHand is a write that is none of ours.
func (w *world) byHand(change func(*argov1alpha1.Application)) {
	app := w.server.apps[appName].DeepCopy()
	change(app)
	w.server.store(app)
}

func app(path string, finalizers ...string) *argov1alpha1.Application {
	return &argov1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: appName, Finalizers: finalizers},
		Spec:       spec(path),
	}
}

func spec(path string) argov1alpha1.ApplicationSpec {
	return argov1alpha1.ApplicationSpec{Project: "default", Source: &argov1alpha1.ApplicationSource{RepoURL: "https://git.example.com/shop", Path: path}}
}

func (w *world) create(t *testing.T, a *argov1alpha1.Application) {
	t.Helper()
	if err := w.CreateApplication(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// read gives the path of the Application as a step would see it, and how many
// requests that took; an empty path for none.
func (w *world) read(t *testing.T) (string, int) {
	t.Helper()
	before := w.server.reads
	got, err := w.Application(t.Context(), appName)
	if err != nil {
		t.Fatal(err)
	}
	if got == nil {
		return "", w.server.reads - before
	}
	return got.Spec.Source.Path, w.server.reads - before
}

func (w *world) expectRead(t *testing.T, when, path string, requests int) {
	t.Helper()
	if gotPath, gotRequests := w.read(t); gotPath != path || gotRequests != requests {
		t.Errorf("%s: read %q with %d requests; want %q with %d", when, gotPath, gotRequests, path, requests)
	}
}

func (w *world) replace(t *testing.T, path string) {
	t.Helper()
	have, err := w.Application(t.Context(), appName)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.UpdateApplication(t.Context(), have, app(path)); err != nil {
		t.Fatal(err)
	}
}
