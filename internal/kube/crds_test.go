// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func crd(name string, conditions ...apiextensionsv1.CustomResourceDefinitionCondition) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     apiextensionsv1.CustomResourceDefinitionStatus{Conditions: conditions},
	}
}

func condition(kind apiextensionsv1.CustomResourceDefinitionConditionType, s apiextensionsv1.ConditionStatus) apiextensionsv1.CustomResourceDefinitionCondition {
	return apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: s}
}

func TestRequireCRDs(t *testing.T) {
	t.Parallel()
	served := condition(apiextensionsv1.Established, apiextensionsv1.ConditionTrue)
	notYet := condition(apiextensionsv1.Established, apiextensionsv1.ConditionFalse)
	accepted := condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue)
	for name, c := range map[string]struct {
		have []client.Object
		want string
	}{
		"all served":   {[]client.Object{crd("a", accepted, served), crd("b", served)}, ""},
		"one missing":  {[]client.Object{crd("a", served)}, "the cluster lacks b; install them with: weir crds install"},
		"both missing": {nil, "the cluster lacks a, b; install them with: weir crds install"},
		"one not served yet": {
			[]client.Object{crd("a", accepted, notYet), crd("b", served)},
			"the cluster lacks a (installed but not established); install them with: weir crds install",
		},
		"nothing said of one": {
			[]client.Object{crd("a", accepted), crd("b", served)},
			"the cluster lacks a (installed but not established); install them with: weir crds install",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fake.NewClientBuilder().WithScheme(NewScheme()).WithObjects(c.have...).Build()
			err := RequireCRDs(t.Context(), r, []*apiextensionsv1.CustomResourceDefinition{crd("a"), crd("b")})
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var missing *MissingCRDs
			if !errors.As(err, &missing) || err.Error() != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// An API server that does not answer is not one without CRDs.
func TestRequireCRDsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	away := errors.New("connection refused")
	r := fake.NewClientBuilder().WithScheme(NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return away
		},
	}).Build()
	err := RequireCRDs(t.Context(), r, []*apiextensionsv1.CustomResourceDefinition{crd("a")})
	var missing *MissingCRDs
	if !errors.Is(err, away) || errors.As(err, &missing) || !strings.Contains(err.Error(), "CRD a") {
		t.Errorf("got %v; want the API server's error, and for which CRD", err)
	}
}

// installer is an API server that takes CRDs and serves them after some time.
type installer struct {
	client.Client
	applied []map[string]any
	looks   int
	// servedAfter is how many looks it takes until a CRD is established.
	servedAfter int
	applyErr    error
}

func newInstaller(servedAfter int) *installer {
	i := &installer{servedAfter: servedAfter}
	i.Client = fake.NewClientBuilder().WithScheme(NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err == nil {
				i.applied = append(i.applied, content)
			}
			return errors.Join(err, i.applyErr)
		},
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			i.looks++
			if i.looks > i.servedAfter {
				o.(*apiextensionsv1.CustomResourceDefinition).Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
					condition(apiextensionsv1.Established, apiextensionsv1.ConditionTrue),
				}
			}
			return nil
		},
	}).Build()
	return i
}

func TestInstallCRDsWaitsUntilTheyAreServed(t *testing.T) {
	t.Parallel()
	i := newInstaller(3)
	synctest.Test(t, func(t *testing.T) {
		if err := InstallCRDs(t.Context(), i, []*apiextensionsv1.CustomResourceDefinition{crd("a"), crd("b")}); err != nil {
			t.Fatal(err)
		}
	})
	if i.looks <= i.servedAfter {
		t.Errorf("looked %d times; the CRDs were not served before %d", i.looks, i.servedAfter)
	}
	if len(i.applied) != 2 {
		t.Fatalf("applied %d", len(i.applied))
	}
	for _, content := range i.applied {
		if _, has := content["status"]; has {
			t.Errorf("applied a status, which is the API server's: %v", content)
		}
	}
}

func TestInstallCRDsGivesUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		installer *installer
		setUp     func(*installer)
		took      time.Duration
	}{
		"refused":      {newInstaller(0), func(i *installer) { i.applyErr = errors.New("forbidden") }, 0},
		"never served": {newInstaller(1 << 30), func(*installer) {}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.setUp(c.installer)
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				if InstallCRDs(t.Context(), c.installer, []*apiextensionsv1.CustomResourceDefinition{crd("a")}) == nil {
					t.Error("no error")
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("took %s; want %s", took, c.took)
				}
			})
		})
	}
}
