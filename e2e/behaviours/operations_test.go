// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/testkit"
)

// operationCR makes an Operation by hand.
func operationCR(namespace, id, resource string) *operationv1alpha1.Operation {
	return &operationv1alpha1.Operation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "operation-" + id,
			Labels: map[string]string{
				operationv1alpha1.TenantLabel:       "somebody",
				operationv1alpha1.ResourceTypeLabel: string(domain.ResourceApplication),
				operationv1alpha1.ResourceLabel:     resource,
			},
		},
		Spec: operationv1alpha1.OperationSpec{OperationID: id},
	}
}

func (w *world) operationExists(op *operationv1alpha1.Operation) bool {
	w.Helper()
	err := w.api.Get(w.ctx, client.ObjectKeyFromObject(op), &operationv1alpha1.Operation{})
	if apierrors.IsNotFound(err) {
		return false
	}
	w.must(err)
	return true
}

func Test44_OperationOutsideAnEngineNamespaceIsNotProcessed(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")
		w.awaitQuiet()
		foreign := operationCR(ns, string(domain.NewOperationID()), string(d.UID))
		w.must(w.api.Create(w.ctx, foreign))
		testkit.Steadily(w.T, 500*time.Millisecond, "left alone", func() string {
			if !w.operationExists(foreign) {
				return "it was processed"
			}
			return ""
		})
		if w.application(d) == nil {
			t.Error("the Application is gone")
		}
	})
}

func Test45_OperationWithoutARowIsRemoved(t *testing.T) {
	each(t, func(w *world) {
		stray := operationCR(w.EngineNamespace, string(domain.NewOperationID()), "none")
		w.must(w.api.Create(w.ctx, stray))
		testkit.Eventually(w.T, "removed", func() string {
			if w.operationExists(stray) {
				return "it is there"
			}
			return ""
		})
	})
}

func Test46_TwoOperationsOnOneResourceBothComplete(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.awaitQuiet()
		w.StopAgent()
		// The first is being worked on when the second is added.
		first := w.announce(d)
		w.must(w.Store.Finish(w.ctx, first.ID, first.Version, domain.OperationInProgress, ""))
		second := w.announce(d)
		if first.ID == second.ID {
			t.Fatal("the one in progress was reused")
		}
		w.StartAgent()
		for _, op := range []store.Operation{first, second} {
			testkit.Eventually(w.T, "completed", func() string {
				task, err := w.Store.Task(w.ctx, domain.ResourceApplication, op.ID)
				w.must(err)
				if task.Operation.State != domain.OperationCompleted {
					return string(task.Operation.State)
				}
				return ""
			})
		}
	})
}

// announce adds an operation on a deployment's application, as a change would.
func (w *world) announce(d *v1alpha1.GitOpsDeployment) store.Operation {
	w.Helper()
	instances, err := w.Store.Instances(w.ctx)
	w.must(err)
	chains, err := w.Store.Chains(w.ctx, d.Namespace, d.Name)
	w.must(err)
	ops, err := w.Store.Apply(w.ctx, store.Change{Announce: []store.NewOperation{{
		ID: domain.NewOperationID(), Tenant: chains[0].Link.Tenant, Instance: instances[0].ID,
		ResourceType: domain.ResourceApplication, ResourceID: string(d.UID),
	}}})
	w.must(err)
	return ops[0]
}

func Test47_DuplicatedAndLateOperationsEndInTheSameState(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.StopAgent()
		for i := range 5 {
			w.edit(d, testkit.WithPath(fmt.Sprintf("p%d", i)))
			w.announce(d)
		}
		w.StartAgent()
		testkit.Eventually(w.T, "the last path", func() string {
			if p := w.application(d).Spec.Source.Path; p != "p4" {
				return p
			}
			return ""
		})
		w.awaitQuiet()
		if p := w.application(d).Spec.Source.Path; p != "p4" {
			t.Errorf("path %s", p)
		}
	})
}

func Test48_NothingIsLostWhileTheAgentIsDown(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		changed, deleted := w.deployed(ns, "changed"), w.deployed(ns, "deleted")
		w.awaitQuiet()
		w.StopAgent()
		created := w.create(testkit.Deployment(ns, "created"))
		w.edit(changed, testkit.WithPath("other"))
		w.delete(deleted)
		testkit.Eventually(w.T, "three operations wait", func() string {
			if n := w.count("SELECT count(*) FROM operation WHERE state = 'Waiting'"); n != 3 {
				return fmt.Sprint(n)
			}
			return ""
		})
		w.StartAgent()
		w.awaitApplication(created)
		w.awaitGone(deleted)
		w.awaitQuiet()
		if p := w.application(changed).Spec.Source.Path; p != "other" {
			t.Errorf("path %s", p)
		}
	})
}

func Test49_ReasonOfAFailedOperationReachesTheTenant(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.awaitQuiet()
		w.StopAgent()
		op := w.announce(d)
		w.must(w.Store.Finish(w.ctx, op.ID, op.Version, domain.OperationFailed, "the engine refused: no such project"))
		w.awaitStatus(d, "the reason", shows(v1alpha1.ConditionErrorOccurred, "no such project"))
		w.StartAgent()
		w.edit(d, testkit.WithPath("other"))
		w.awaitStatus(d, "resolved", resolved(v1alpha1.ConditionErrorOccurred))
	})
}

func Test50_OutboxAnnouncesWhatACrashLeftBehind(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.awaitQuiet()
		w.StopBackend()
		// Committed, and then nobody created the CR.
		w.exec("UPDATE application SET spec = replace(spec, '\"deploy\"', '\"other\"'), version = version + 1 WHERE id = $1", string(d.UID))
		w.announce(d)
		w.edit(d, testkit.WithPath("other"))
		w.StartBackend()
		testkit.Eventually(w.T, "carried out", func() string {
			if p := w.application(d).Spec.Source.Path; p != "other" {
				return p
			}
			return ""
		})
		w.awaitQuiet()
	})
}

func Test50_RowAddedByHandIsAnnouncedWhileTheBackendRuns(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.awaitQuiet()
		w.must(w.api.Delete(w.ctx, &argov1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.EngineNamespace, Name: appName(d)}}))
		testkit.Eventually(w.T, "the Application is gone", func() string {
			if w.application(d) != nil {
				return "it is there"
			}
			return ""
		})
		w.announce(d)
		w.awaitApplication(d)
	})
}

func Test50_RowWithoutAnApplicationIsHealedWhenTheAgentStarts(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.awaitQuiet()
		w.StopAgent()
		w.must(w.api.Delete(w.ctx, &argov1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.EngineNamespace, Name: appName(d)}}))
		testkit.Eventually(w.T, "the Application is gone", func() string {
			if w.application(d) != nil {
				return "it is there"
			}
			return ""
		})
		w.StartAgent()
		w.awaitApplication(d)
	})
}

func Test52_DeploymentsDeletedWhileTheBackendIsDownAreGoneAfterItReturns(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		var all []*v1alpha1.GitOpsDeployment
		for i := range 20 {
			all = append(all, w.deployed(ns, fmt.Sprintf("d%d", i)))
		}
		w.StopBackend()
		for _, d := range all {
			w.delete(d)
		}
		w.StartBackend()
		for _, d := range all {
			w.awaitGone(d)
		}
		w.awaitQuiet()
	})
}
