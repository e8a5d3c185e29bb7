// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/testkit"
)

// A server without Weir's definitions answers as this one does for a resource
// that it does not have.
func TestMissingDefinitionsAreToldFromMissingObjects(t *testing.T) {
	w := newTenant(t)
	nothings := v1alpha1.GroupVersion.WithResource("nothings")
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(deployments().gvk(), nothings, nothings, meta.RESTScopeNamespace)
	api, err := client.NewWithWatch(server.cluster.Config, client.Options{Scheme: newScheme(), Mapper: mapper})
	must(t, err)
	s := &session{api: api, namespace: w.namespace, host: "https://here", program: "weir"}
	for name, try := range map[string]func() error{
		"get":  func() error { _, err := s.get(t.Context(), deployments(), "shop"); return err },
		"list": func() error { _, err := s.all(t.Context(), deployments()); return err },
		"create": func() error {
			return s.explain(t.Context(), api.Create(t.Context(), testkit.Deployment(w.namespace, "shop")), deployments().access("create", w.namespace, ""))
		},
	} {
		if err := try(); err == nil || errors.Is(err, errNotFound) || !strings.Contains(err.Error(), "Weir is not installed there; ask its operator") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.run("get", "deploy", "shop").want(t, 1, `deployment "shop" not found`)
	w.kubeconfig = server.cluster.Kubeconfig
	w.run("sync", "shop", "--allow-missing", "-n", "no-such-place").want(t, 1, `there is no namespace "no-such-place"`)
}

// What is forbidden for another reason than a permission keeps its reason.
func TestAQuotaIsNoMissingPermission(t *testing.T) {
	w := newTenant(t)
	w.create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/gitopsdeploymentsyncruns.managed-gitops.redhat.com": resource.MustParse("0")},
	}})
	testkit.Eventually(t, "the quota's status", func() string {
		q := &corev1.ResourceQuota{}
		must(t, w.api.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "few"}, q))
		if len(q.Status.Hard) == 0 {
			return "not taken up yet"
		}
		return ""
	})
	w.run("sync", "shop", "--allow-missing").want(t, 1, "the cluster does not allow it", "quota: few")
}

func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{0: nil, 1: errors.New("any"), 2: usagef("wrong"), 3: fmt.Errorf("around: %w", exitf(exitTimedOut, "late"))} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}
