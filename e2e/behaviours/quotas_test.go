// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/intake"
	"github.com/weir-gitops/weir/internal/testkit"
	"github.com/weir-gitops/weir/internal/testkit/service"
)

// limited is a kind with a quota.
type limited struct {
	kind, annotation string
	create           func(w *world, namespace, name string) client.Object
	// says reads the newest version's error, empty where it has none; seen is false
	// before anybody looked at it.
	says func(w *world, o client.Object) (message string, seen bool)
}

func limitedKinds() []limited {
	return []limited{
		{
			kind: "GitOpsDeployments", annotation: intake.QuotaDeployments,
			create: func(w *world, namespace, name string) client.Object {
				return w.create(testkit.Deployment(namespace, name))
			},
			says: func(w *world, o client.Object) (string, bool) {
				d := w.get(o.(*v1alpha1.GitOpsDeployment))
				if c := condition(d, v1alpha1.ConditionErrorOccurred); c.Status == metav1.ConditionTrue {
					return c.Message, true
				}
				return "", w.application(d) != nil
			},
		},
		{
			kind: "GitOpsDeploymentManagedEnvironments", annotation: intake.QuotaEnvironments,
			// That its Secret is not there is found after the quota.
			create: func(w *world, namespace, name string) client.Object { return w.environment(namespace, name, "none") },
			says: func(w *world, o client.Object) (string, bool) {
				latest := &v1alpha1.GitOpsDeploymentManagedEnvironment{}
				w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), latest))
				c := meta.FindStatusCondition(latest.Status.Conditions, string(v1alpha1.ConditionConnectionInitializationSucceeded))
				if c == nil {
					return "", false
				}
				return c.Message, true
			},
		},
		{
			kind: "GitOpsDeploymentRepositoryCredentials", annotation: intake.QuotaCredentials,
			create: func(w *world, namespace, name string) client.Object {
				return w.credential(namespace, name, "https://git.example.com/"+name, "none")
			},
			says: func(w *world, o client.Object) (string, bool) {
				latest := &v1alpha1.GitOpsDeploymentRepositoryCredential{}
				w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), latest))
				c := meta.FindStatusCondition(latest.Status.Conditions, string(v1alpha1.ConditionErrorOccurred))
				if c == nil {
					return "", false
				}
				return c.Message, true
			},
		},
	}
}

func (w *world) awaitAdmitted(l limited, o client.Object) {
	w.Helper()
	testkit.Eventually(w.T, l.kind+": "+o.GetName()+" is let in", func() string {
		message, seen := l.says(w, o)
		if !seen {
			return "not seen"
		}
		if mention(message, "quota") == "" {
			return message
		}
		return ""
	})
}

func (w *world) awaitBeyond(l limited, o client.Object, quota int) {
	w.Helper()
	testkit.Eventually(w.T, l.kind+": "+o.GetName()+" is beyond the quota", func() string {
		message, _ := l.says(w, o)
		return mention(message, l.annotation, fmt.Sprintf("%d %s", quota, l.kind), "operator")
	})
}

// later waits until what is created is younger than an object: times of creation
// are in seconds.
func (w *world) later(than client.Object) {
	w.Helper()
	testkit.Eventually(w.T, "the next second", func() string {
		if time.Now().Unix() <= than.GetCreationTimestamp().Unix() {
			return "the same second"
		}
		return ""
	})
}

func (w *world) annotate(namespace, name, value string) {
	w.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, name, value)
	w.must(w.api.Patch(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, client.RawPatch(types.MergePatchType, patch)))
}

func TestQuotasNameThemselvesAndMakeRoom(t *testing.T) {
	for _, l := range limitedKinds() {
		t.Run(l.kind, func(t *testing.T) {
			each(t, func(w *world) {
				usual, special := w.tenant(), w.tenant()
				first := l.create(w, usual, "first")
				w.awaitAdmitted(l, first)
				w.later(first)
				second := l.create(w, usual, "second")
				w.awaitBeyond(l, second, 1)
				w.must(w.api.Delete(w.ctx, first))
				w.awaitAdmitted(l, second)

				w.annotate(special, l.annotation, "2")
				// Until the service has read the annotation, the usual quota counts.
				var last client.Object
				for i := range 2 {
					last = l.create(w, special, fmt.Sprintf("special-%d", i))
					w.awaitAdmitted(l, last)
				}
				w.later(last)
				third := l.create(w, special, "third")
				w.awaitBeyond(l, third, 2)
				w.annotate(special, l.annotation, "3")
				w.awaitAdmitted(l, third)

				w.annotate(special, l.annotation, "many")
				w.later(third)
				w.awaitBeyond(l, l.create(w, special, "fourth"), 1)
			}, service.WithQuotas(intake.Quotas{Deployments: 1, Environments: 1, Credentials: 1, RunningSyncs: 1}))
		})
	}
}

func TestRunningSyncsBeyondTheQuotaWaitTheirTurn(t *testing.T) {
	each(t, func(w *world) {
		ns, special := w.tenant(), w.tenant()
		one, two := w.deployed(ns, "one"), w.deployed(ns, "two")
		first := w.syncRun(ns, "first", "one", "")
		app := w.requested(one, first)
		w.begin(app)
		second := w.syncRun(ns, "second", "two", "")
		testkit.Eventually(w.T, "the second is taken in", func() string { return zero(2 - w.count("SELECT count(*) FROM sync_operation")) })
		testkit.Steadily(w.T, 700*time.Millisecond, "the second waits", func() string {
			if op := w.application(two).Operation; op != nil {
				return fmt.Sprintf("%+v", op)
			}
			return ""
		})
		w.finish(app, "Succeeded", "", "abc")
		next := w.requested(two, second)
		w.begin(next)
		w.finish(next, "Succeeded", "", "abc")
		w.awaitRun(second, "it succeeded", runShows(v1alpha1.ConditionSucceeded, metav1.ConditionTrue))

		w.annotate(special, intake.QuotaRunningSyncs, "2")
		for _, name := range []string{"a", "b"} {
			d := w.deployed(special, name)
			w.begin(w.requested(d, w.syncRun(special, name, name, "")))
		}
	}, service.WithQuotas(intake.Quotas{Deployments: 10, Environments: 1, Credentials: 1, RunningSyncs: 1}))
}
