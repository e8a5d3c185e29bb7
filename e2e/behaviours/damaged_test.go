// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/testkit"
)

// What the backend refuses does not get past it by the database either: an engine
// is given no row that a hand has made dangerous, and the refusal has the backend
// look at the resource again, which repairs the row.
func TestRowsMadeDangerousByHandReachNoEngine(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		for name, column := range map[string]string{
			"a-local-file":            `"repoURL":"file:///etc"`,
			"a-program":               `"repoURL":"ext::sh -c id"`,
			"an-option":               `"repoURL":"--upload-pack=id"`,
			"credentials-in-the-url":  `"repoURL":"https://u:p@git.example.com/x"`,
			"a-pattern":               `"repoURL":"https://git.example.com/*"`,
			"a-path-that-climbs-out":  `"path":"../../etc"`,
			"a-revision-as-an-option": `"targetRevision":"--output=/tmp/x"`,
			"a-namespace-as-pattern":  `"namespace":"*"`,
		} {
			d := w.deployed(ns, name)
			w.awaitQuiet()
			before := w.application(d)
			// Otherwise it might repair the row before the agent has seen it.
			w.StopBackend()
			good := `"repoURL":"https://git.example.com/team/shop","path":"deploy","namespace":"` + ns + `"`
			// The later of two entries counts.
			w.exec("UPDATE application SET spec = $1 WHERE id = $2", "{"+good+","+column+`,"automated":true}`, string(d.UID))
			w.announce(d)
			testkit.Eventually(w.T, "the agent refuses "+name, func() string {
				if w.count("SELECT count(*) FROM operation WHERE resource_id = $1 AND human_readable_state LIKE '%changed by hand%'", string(d.UID)) == 0 {
					return "no operation says so"
				}
				return ""
			})
			w.StartBackend()
			testkit.Eventually(w.T, "the row is repaired", func() string {
				return zero(1 - w.count("SELECT count(*) FROM application WHERE id = $1 AND generation = $2 AND version > 1", string(d.UID), d.Generation))
			})
			w.awaitQuiet()
			if after := w.application(d); after.ResourceVersion != before.ResourceVersion {
				t.Errorf("%s: the Application was changed to %+v", name, after.Spec)
			}
		}
	})
}

// The same for a sync's revision and an environment's namespaces: what an engine is
// asked for, and what it is told of a cluster, stays as it was.
func TestSyncsAndEnvironmentsMadeDangerousByHandReachNoEngine(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")
		e := w.connected(ns, "staging")
		w.awaitQuiet()
		// Taken in, and not yet seen by an agent.
		w.StopAgent()
		run := w.syncRun(ns, "now", "shop", "main")
		testkit.Eventually(w.T, "it is announced", func() string {
			var ops operationv1alpha1.OperationList
			w.must(w.api.List(w.ctx, &ops, client.InNamespace(w.EngineNamespace)))
			return zero(1 - len(ops.Items))
		})
		w.StopBackend()
		w.exec("UPDATE sync_operation SET revision = '--upload-pack=id' WHERE id = $1", string(run.UID))
		w.exec("UPDATE cluster_credentials SET namespaces = 'shop,*' WHERE id = $1", string(e.UID))
		before := w.clusterSecret(e)
		failed := func(kind domain.ResourceType) {
			testkit.Eventually(w.T, "the operation on "+string(kind)+" fails", func() string {
				return zero(1 - w.count("SELECT count(*) FROM operation WHERE resource_type = $1 AND state = 'Failed' AND human_readable_state LIKE '%changed by hand%'", string(kind)))
			})
		}
		w.StartAgent()
		failed(domain.ResourceSyncOperation)
		w.announceOn(ns, domain.ResourceManagedEnvironment, string(e.UID))
		failed(domain.ResourceManagedEnvironment)
		if op := w.application(d).Operation; op != nil {
			t.Errorf("the engine was asked for %+v", op.Sync)
		}
		if after := w.clusterSecret(e); after.ResourceVersion != before.ResourceVersion {
			t.Errorf("the engine was told %s", after.Data["namespaces"])
		}
	})
}

// announceOn has the agent look at a row of a tenant, as after a change.
func (w *world) announceOn(namespace string, t domain.ResourceType, id string) {
	w.Helper()
	instances, err := w.Store.Instances(w.ctx)
	w.must(err)
	_, err = w.Store.Apply(w.ctx, store.Change{Announce: []store.NewOperation{{
		ID: domain.NewOperationID(), Tenant: domain.TenantID(w.namespaceUID(namespace)), Instance: instances[0].ID, ResourceType: t, ResourceID: id,
	}}})
	w.must(err)
}

// A credential is sealed for its repository: whoever points its row elsewhere
// gets nothing sent there.
func TestACredentialPointedElsewhereByHandIsNotGivenOut(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		w.secret(ns, "git", v1alpha1.RepositoryCredentialSecretType, map[string][]byte{"username": []byte("u"), "password": []byte("p")})
		cr := &v1alpha1.GitOpsDeploymentRepositoryCredential{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "git"},
			// Nobody listens there, so it cannot be checked, and the engine gets it.
			Spec: v1alpha1.GitOpsDeploymentRepositoryCredentialSpec{Repository: "https://127.0.0.1:1/team/shop", Secret: "git"},
		}
		w.must(w.api.Create(w.ctx, cr))
		name := domain.RepositorySecretName(domain.CredentialID(cr.UID))
		testkit.Eventually(w.T, "the engine has it", func() string {
			if w.engineSecret(name) == nil {
				return "no Secret"
			}
			return ""
		})
		w.awaitQuiet()
		w.StopBackend()
		w.exec("UPDATE repository_credentials SET repository_url = 'https://127.0.0.1:2/elsewhere' WHERE id = $1", string(cr.UID))
		w.announceOn(ns, domain.ResourceRepositoryCredential, string(cr.UID))
		testkit.Eventually(w.T, "the operation fails", func() string {
			return zero(1 - w.count("SELECT count(*) FROM operation WHERE resource_type = 'RepositoryCredential' AND state = 'Failed'"))
		})
		if url := string(w.engineSecret(name).Data["url"]); url != cr.Spec.Repository {
			t.Errorf("the engine was sent to %s", url)
		}
		w.StartBackend()
		testkit.Eventually(w.T, "the row is repaired", func() string {
			return zero(1 - w.count("SELECT count(*) FROM repository_credentials WHERE repository_url = $1", cr.Spec.Repository))
		})
	})
}
