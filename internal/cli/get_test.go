// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/testkit"
)

func TestGet(t *testing.T) {
	w := newTenant(t)
	w.run("get").want(t, 0, "There are no deployments in namespace "+w.namespace)
	d := testkit.Deployment("", "shop")
	w.create(d)
	d.Status.Sync = v1alpha1.SyncStatus{Status: v1alpha1.SyncSynced, Revision: commit}
	d.Status.Health.Status = v1alpha1.HealthHealthy
	w.setStatus(d)
	run := &v1alpha1.GitOpsDeploymentSyncRun{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: v1alpha1.GitOpsDeploymentSyncRunSpec{GitopsDeploymentName: "shop"}}
	w.create(run)

	for _, args := range [][]string{{"get"}, {"get", "deployments"}, {"get", "gd"}, {"get", "deploy", "shop"}, {"get", "GitOpsDeployment"}} {
		w.run(args...).want(t, 0, "NAME   SYNC     HEALTH    REVISION   AGE", "shop   Synced   Healthy   3b18e512")
	}
	w.run("get", "all").want(t, 0, "deployment/shop ", "syncrun/one ")
	w.run("get", "all", "-o", "name").want(t, 0, "gitopsdeployments.managed-gitops.redhat.com/shop\n", "gitopsdeploymentsyncruns.managed-gitops.redhat.com/one\n")
	w.run("get", "runs", "-o", "wide").want(t, 0, "ASKED FOR", "one    shop         Waiting")
	w.run("get", "deploy", "shp").want(t, 1, "did you mean shop?")
	w.run("get", "pods").want(t, 2, `there is no kind "pods": choose deployments`)
	w.run("get", "all", "--watch").want(t, 2, "one kind at a time")
	w.run("get", "-o", "xml").want(t, 2, "use json, yaml, wide or name")

	var one v1alpha1.GitOpsDeployment
	must(t, yaml.UnmarshalStrict([]byte(w.run("get", "deploy", "shop", "-o", "yaml").out), &one))
	if one.Kind != "GitOpsDeployment" || one.Status.Sync.Revision != commit || one.ManagedFields != nil {
		t.Errorf("as YAML: %+v", one)
	}
	var list struct {
		Kind  string
		Items []v1alpha1.GitOpsDeployment
	}
	must(t, json.Unmarshal([]byte(w.run("get", "-o", "json").out), &list))
	if list.Kind != "List" || len(list.Items) != 1 || list.Items[0].Name != "shop" {
		t.Errorf("as JSON: %+v", list)
	}
}

func TestGetWatchShowsChanges(t *testing.T) {
	w := newTenant(t)
	d := testkit.Deployment("", "shop")
	w.create(d)
	r := w.start("get", "deployments", "-w")
	r.says("shop   -")
	d.Status.Sync.Status = v1alpha1.SyncOutOfSync
	w.setStatus(d)
	r.says("shop   OutOfSync")
	must(t, w.api.Delete(t.Context(), d))
	r.says("deleted")
	r.cancel()
	r.wait().want(t, 0)
	if n := strings.Count(r.out.String(), "NAME"); n != 1 {
		t.Errorf("%d header lines:\n%s", n, r.out.String())
	}
}

func TestATenantWithoutPermissionsIsToldWhichAreMissing(t *testing.T) {
	w := newTenant(t)
	w.run("get", "-A").want(t, 1, "you lack the permission to list gitopsdeployments.managed-gitops.redhat.com in all namespaces", "leave -A out")
	w.run("get", "-n", "kube-system").want(t, 1, `list gitopsdeployments.managed-gitops.redhat.com in namespace "kube-system"`, "ask whoever administers")

	w.create(testkit.Deployment("", "shop"))
	w.kubeconfig = w.writeKubeconfig("reader", w.serviceAccount("reader", []rbacv1.PolicyRule{
		{APIGroups: []string{"managed-gitops.redhat.com"}, Resources: []string{"gitopsdeployments"}, Verbs: []string{"get", "list"}},
	}))
	w.run("get").want(t, 0, "shop")
	w.run("get", "-w").want(t, 1, "you lack the permission to watch gitopsdeployments")
	w.run("sync", "shop").want(t, 1, "you lack the permission to create gitopsdeploymentsyncruns")
	w.run("describe", "shop").want(t, 0, "deployment shop", "Not shown: you lack the permission to list gitopsdeploymentsyncruns", "list events")
	w.run("history", "shop").want(t, 0, "Without sync runs: you lack the permission", "has not been deployed yet")
	w.kubeconfig = w.writeKubeconfig("nobody", "no-token-of-this-cluster")
	w.run("get").want(t, 1, "does not know you")
}

func TestAnAdministratorSeesAllNamespaces(t *testing.T) {
	w := newTenant(t)
	w.create(testkit.Deployment("", "shop"))
	w.kubeconfig = server.cluster.Kubeconfig
	w.run("get", "-A").want(t, 0, "NAMESPACE", w.namespace+"   shop")
	w.run("get", "-n", w.namespace).want(t, 0, "shop")
	w.run("get", "--context", "elsewhere").want(t, 1, `no context "elsewhere"`)
}

func TestAClusterThatIsNotThere(t *testing.T) {
	w := newTenant(t)
	must(t, rewriteServer(w.kubeconfig, "https://127.0.0.1:1"))
	w.run("get").want(t, 1, "cannot reach the cluster at https://127.0.0.1:1", "connection refused", "--context")
	w.kubeconfig = w.TempDir() + "/none"
	w.run("get").want(t, 1, "kubeconfig")
}
