// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/testkit"
	"github.com/weir-gitops/weir/internal/testkit/githttps"
	"github.com/weir-gitops/weir/internal/testkit/service"
)

// furnished is a tenant that has one of everything.
type furnished struct {
	namespace   string
	environment *v1alpha1.GitOpsDeploymentManagedEnvironment
	credential  *v1alpha1.GitOpsDeploymentRepositoryCredential
	local       *v1alpha1.GitOpsDeployment
	remote      *v1alpha1.GitOpsDeployment
	run         *v1alpha1.GitOpsDeploymentSyncRun
}

// furnish gives a new tenant one of everything. All names begin with the word, so
// that two tenants have none in common.
func (w *world) furnish(word string, git *githttps.Server) furnished {
	w.Helper()
	f := furnished{namespace: w.tenant()}
	f.environment = w.connected(f.namespace, word+"-environment")
	w.login(f.namespace, word+"-login", "me", "good")
	f.credential = w.credential(f.namespace, word+"-credential", git.URL("shop.git"), word+"-login")
	w.awaitRepositorySecret(f.credential, map[string]string{"username": "me", "password": "good"})
	f.local = w.deployed(f.namespace, word+"-local", testkit.WithRepo(git.URL("shop.git")))
	f.remote = w.deployed(f.namespace, word+"-remote", to(f.environment, "apps"))
	f.run = w.syncRun(f.namespace, word+"-run", f.local.Name, "")
	w.requested(f.local, f.run)
	return f
}

func gitForBoth(t *testing.T) *githttps.Server {
	git := githttps.Start(t, "shop.git")
	git.Accept(githttps.Login{User: "me", Password: "good"})
	return git
}

// reference is a field by which one object names another.
type reference struct {
	field string
	// make makes an object that names what; it is called object.
	make func(namespace, object, what string) client.Object
	// says reads what the tenant is told, empty while that is nothing.
	says func(w *world, o client.Object) string
}

func references(git *githttps.Server) []reference {
	return []reference{
		{
			field: "GitOpsDeployment spec.destination.environment",
			make: func(namespace, object, what string) client.Object {
				return testkit.Deployment(namespace, object, testkit.WithDestination(what, "apps"))
			},
			says: func(w *world, o client.Object) string {
				return condition(w.get(o.(*v1alpha1.GitOpsDeployment)), v1alpha1.ConditionErrorOccurred).Message
			},
		},
		{
			field: "GitOpsDeploymentSyncRun spec.gitopsDeploymentName",
			make: func(namespace, object, what string) client.Object {
				return &v1alpha1.GitOpsDeploymentSyncRun{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: object},
					Spec:       v1alpha1.GitOpsDeploymentSyncRunSpec{GitopsDeploymentName: what},
				}
			},
			says: func(w *world, o client.Object) string {
				return runCondition(w.run(o.(*v1alpha1.GitOpsDeploymentSyncRun)), v1alpha1.ConditionErrorOccurred).Message
			},
		},
		{
			field: "GitOpsDeploymentManagedEnvironment spec.credentialsSecret",
			make: func(namespace, object, what string) client.Object {
				return &v1alpha1.GitOpsDeploymentManagedEnvironment{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: object},
					Spec:       v1alpha1.GitOpsDeploymentManagedEnvironmentSpec{APIURL: cluster.Config.Host, CredentialsSecret: what},
				}
			},
			says: func(w *world, o client.Object) string {
				latest := &v1alpha1.GitOpsDeploymentManagedEnvironment{}
				w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), latest))
				return sentence(latest.Status.Conditions, v1alpha1.ConditionConnectionInitializationSucceeded)
			},
		},
		{
			field: "GitOpsDeploymentRepositoryCredential spec.secret",
			make: func(namespace, object, what string) client.Object {
				return &v1alpha1.GitOpsDeploymentRepositoryCredential{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: object},
					Spec:       v1alpha1.GitOpsDeploymentRepositoryCredentialSpec{Repository: git.URL("shop.git"), Secret: what},
				}
			},
			says: func(w *world, o client.Object) string {
				latest := &v1alpha1.GitOpsDeploymentRepositoryCredential{}
				w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), latest))
				return sentence(latest.Status.Conditions, v1alpha1.ConditionErrorOccurred)
			},
		},
	}
}

func sentence(all []metav1.Condition, kind v1alpha1.ConditionType) string {
	if c := meta.FindStatusCondition(all, string(kind)); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

func TestIsolation_WhatIsAnothersIsAsIfItWereNotThere(t *testing.T) {
	git := gitForBoth(t)
	each(t, func(w *world) {
		victim, thief := w.furnish("victim", git), w.tenant()
		targets := map[string]string{
			"GitOpsDeployment spec.destination.environment":             victim.environment.Name,
			"GitOpsDeploymentSyncRun spec.gitopsDeploymentName":         victim.local.Name,
			"GitOpsDeploymentManagedEnvironment spec.credentialsSecret": victim.environment.Spec.CredentialsSecret,
			"GitOpsDeploymentRepositoryCredential spec.secret":          victim.credential.Spec.Secret,
		}
		for i, r := range references(git) {
			answers := map[string]string{}
			for kind, what := range map[string]string{"foreign": targets[r.field], "missing": "nobody-has-this"} {
				o := r.make(thief, fmt.Sprintf("%s-%d", kind, i), what)
				w.must(w.api.Create(w.ctx, o))
				testkit.Eventually(w.T, r.field+" "+kind, func() string {
					answers[kind] = strings.ReplaceAll(r.says(w, o), what, "NAME")
					return mention(answers[kind], "NAME")
				})
			}
			if answers["foreign"] != answers["missing"] {
				t.Errorf("%s: another's can be told from none:\n%s\n%s", r.field, answers["foreign"], answers["missing"])
			}
			for _, far := range []string{victim.namespace + "/" + targets[r.field], "../" + victim.namespace + "/" + targets[r.field], targets[r.field] + "." + victim.namespace + "/"} {
				if err := w.api.Create(w.ctx, r.make(thief, "far", far)); !apierrors.IsInvalid(err) {
					t.Errorf("%s: %q is taken: %v", r.field, far, err)
				}
			}
		}
		w.ownsNothing(thief)
		w.untouched(victim)
	}, service.WithGitAuthorities(git.Authorities))
}

// ownsNothing looks for anything that was made for a tenant.
func (w *world) ownsNothing(namespace string) {
	w.Helper()
	tenant := w.namespaceUID(namespace)
	for _, table := range []string{"application", "sync_operation", "cluster_credentials", "repository_credentials", "operation"} {
		if n := w.count("SELECT count(*) FROM "+table+" WHERE tenant = $1", tenant); n != 0 {
			w.Errorf("%d rows in %s", n, table)
		}
	}
	for _, list := range []client.ObjectList{&argov1alpha1.ApplicationList{}, &argov1alpha1.AppProjectList{}, &corev1.SecretList{}} {
		w.must(w.api.List(w.ctx, list, client.InNamespace(w.EngineNamespace), client.MatchingLabels{argov1alpha1.TenantLabel: tenant}))
		if n := len(items(list)); n != 0 {
			w.Errorf("%d items in %T", n, list)
		}
	}
}

// untouched says whether a tenant has all that it was furnished with.
func (w *world) untouched(f furnished) {
	w.Helper()
	for _, d := range []*v1alpha1.GitOpsDeployment{f.local, f.remote} {
		if app := w.application(d); app == nil || !app.DeletionTimestamp.IsZero() || app.Spec.Project != w.project(f.namespace).Name {
			w.Errorf("the Application of %s is not what it was: %+v", d.Name, app)
		}
	}
	if w.clusterSecret(f.environment) == nil || w.repositorySecret(f.credential) == nil {
		w.Error("a Secret is gone")
	}
	if op := w.application(f.local).Operation; op == nil || len(op.Info) != 1 || op.Info[0].Value != string(f.run.UID) {
		w.Errorf("its sync is another: %+v", op)
	}
}

// verbs are what somebody could try with an object of another.
func verbs() map[string]func(c client.Client, w *world, o client.Object) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))
	fresh := func(o client.Object) client.Object { return o.DeepCopyObject().(client.Object) }
	return map[string]func(c client.Client, w *world, o client.Object) error{
		"get": func(c client.Client, w *world, o client.Object) error {
			return c.Get(w.ctx, client.ObjectKeyFromObject(o), fresh(o))
		},
		"update": func(c client.Client, w *world, o client.Object) error { return c.Update(w.ctx, fresh(o)) },
		"patch":  func(c client.Client, w *world, o client.Object) error { return c.Patch(w.ctx, fresh(o), patch) },
		"status": func(c client.Client, w *world, o client.Object) error {
			return c.SubResource("status").Patch(w.ctx, fresh(o), patch)
		},
		"delete": func(c client.Client, w *world, o client.Object) error { return c.Delete(w.ctx, fresh(o)) },
		"create": func(c client.Client, w *world, o client.Object) error {
			n := fresh(o)
			n.SetResourceVersion("")
			n.SetUID("")
			n.SetName(o.GetName() + "-2")
			return c.Create(w.ctx, n)
		},
		"delete all": func(c client.Client, w *world, o client.Object) error {
			return c.DeleteAllOf(w.ctx, fresh(o), client.InNamespace(o.GetNamespace()))
		},
	}
}

func TestIsolation_EveryVerbOnEveryKindOfAnotherIsDenied(t *testing.T) {
	git := gitForBoth(t)
	each(t, func(w *world) {
		victim, thief := w.furnish("victim", git), w.tenant()
		editor := user(w.T, "thief", thief, "edit")
		testkit.Eventually(w.T, "the thief may work in its own namespace", func() string {
			return said(editor.List(w.ctx, &v1alpha1.GitOpsDeploymentList{}, client.InNamespace(thief)))
		})
		inEngine := metav1.ObjectMeta{Namespace: w.EngineNamespace}
		named := func(name string) metav1.ObjectMeta { m := inEngine; m.Name = name; return m }
		all := []client.Object{
			victim.local, victim.run, victim.environment, victim.credential,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: victim.credential.Spec.Secret}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: domain.DeployerServiceAccount}},
			&argov1alpha1.Application{ObjectMeta: named(appName(victim.local))},
			&argov1alpha1.AppProject{ObjectMeta: named(w.project(victim.namespace).Name)},
			&corev1.Secret{ObjectMeta: named(w.clusterSecret(victim.environment).Name)},
			&operationv1alpha1.Operation{ObjectMeta: named("operation-x"), Spec: operationv1alpha1.OperationSpec{OperationID: "x"}},
		}
		for _, o := range all {
			for verb, try := range verbs() {
				err := try(editor, w, o)
				missing := o.DeepCopyObject().(client.Object)
				missing.SetName("nobody-has-this")
				none := try(editor, w, missing)
				if !apierrors.IsForbidden(err) || !apierrors.IsForbidden(none) {
					t.Errorf("%s %T: %v; where there is none: %v", verb, o, err, none)
					continue
				}
				if a, b := strings.ReplaceAll(err.Error(), o.GetName(), "NAME"), strings.ReplaceAll(none.Error(), missing.GetName(), "NAME"); a != b {
					t.Errorf("%s %T: another's can be told from none:\n%s\n%s", verb, o, a, b)
				}
			}
		}
		// The namespace itself carries the quotas: who may edit in it may not edit it.
		own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: thief}}
		if err := editor.Patch(w.ctx, own, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"managedgitops.io/quota-deployments":"9"}}}`))); !apierrors.IsForbidden(err) {
			t.Errorf("a tenant gives itself a quota: %v", err)
		}
		w.untouched(victim)
	}, service.WithGitAuthorities(git.Authorities))
}

func TestIsolation_RowsCannotReferToAnothers(t *testing.T) {
	git := gitForBoth(t)
	each(t, func(w *world) {
		victim, thief := w.furnish("victim", git), w.furnish("thief", git)
		w.awaitOnlySyncsLeft()
		w.StopBackend()
		w.StopAgent()
		v, th := w.namespaceUID(victim.namespace), w.namespaceUID(thief.namespace)
		values := strings.NewReplacer(
			"{victim}", v, "{thief}", th, "{victim.app}", string(victim.local.UID), "{thief.app}", string(thief.local.UID),
			"{victim.env}", string(victim.environment.UID), "{thief.env}", string(thief.environment.UID),
			"{victim.cred}", string(victim.credential.UID), "{thief.cred}", string(thief.credential.UID), "{thief.run}", string(thief.run.UID),
			"{engine}", w.instance())
		for _, statement := range []string{
			"UPDATE application SET environment_id = '{victim.env}' WHERE id = '{thief.app}'",
			"UPDATE application SET environment_id = '{victim}' WHERE id = '{thief.app}'",
			"UPDATE application SET tenant = '{victim}' WHERE id = '{thief.app}'",
			"INSERT INTO application_state (application_id, tenant, engine_uid, sequence) VALUES ('{victim.app}', '{thief}', 'x', 1)",
			"INSERT INTO application_owner (application_id, tenant) VALUES ('{victim.app}', '{thief}')",
			"UPDATE deployment_to_application_mapping SET tenant = '{thief}' WHERE application_id = '{victim.app}'",
			"UPDATE managed_environment SET credentials_id = '{victim.env}' WHERE id = '{thief.env}'",
			"UPDATE managed_environment SET tenant = '{thief}' WHERE id = '{victim.env}'",
			"UPDATE cluster_credentials SET tenant = '{thief}' WHERE id = '{victim.env}'",
			"INSERT INTO cluster_access (tenant, environment_id, instance_id) VALUES ('{thief}', '{victim.env}', '{engine}')",
			"UPDATE sync_operation SET application_id = '{victim.app}' WHERE id = '{thief.run}'",
			"UPDATE sync_operation SET tenant = '{victim}' WHERE id = '{thief.run}'",
			"INSERT INTO app_project_repository (id, tenant, repository_credentials_id, repository_url) VALUES ('x', '{thief}', '{victim.cred}', 'https://r')",
			"INSERT INTO app_project_managed_environment (id, tenant, managed_environment_id) VALUES ('x', '{thief}', '{victim.env}')",
		} {
			result, err := w.Raw.ExecContext(w.ctx, values.Replace(statement))
			if err == nil {
				n, _ := result.RowsAffected()
				t.Errorf("accepted for %d rows: %s", n, statement)
			}
		}
		// A link has no foreign key to what it stands for. One that is bent leads nowhere.
		w.exec(values.Replace("UPDATE api_cr_to_database_mapping SET db_relation_key = '{victim.env}' WHERE cr_uid = '{thief.env}'"))
		w.exec(values.Replace("UPDATE api_cr_to_database_mapping SET db_relation_key = '{victim.cred}' WHERE cr_uid = '{thief.cred}'"))
		chains, err := w.Store.EnvironmentChains(w.ctx, thief.namespace, thief.environment.Name)
		w.must(err)
		credentials, err := w.Store.CredentialChains(w.ctx, thief.namespace, thief.credential.Name)
		w.must(err)
		if len(chains) != 1 || chains[0].Environment != nil || len(credentials) != 1 || credentials[0].Credential != nil {
			t.Errorf("a bent link leads to another's row: %+v, %+v", chains, credentials)
		}
		// Sealed for another place, a credential does not open.
		w.exec(values.Replace("UPDATE cluster_credentials SET sealed_kubeconfig = (SELECT sealed_kubeconfig FROM cluster_credentials WHERE id = '{victim.env}') WHERE id = '{thief.env}'"))
		w.exec(values.Replace("DELETE FROM operation"))
		before := w.awaitAccess(victim.environment).Token
		w.StartAgent()
		w.StartBackend()
		w.touch(thief.environment)
		testkit.Steadily(w.T, time.Second, "the other's token", func() string {
			if secret := w.clusterSecret(thief.environment); secret != nil && strings.Contains(string(secret.Data["config"]), before) {
				return "is in the thief's Secret"
			}
			return ""
		})
		w.untouched(victim)
	}, service.WithGitAuthorities(git.Authorities))
}

// awaitOnlySyncsLeft waits until all operations but those of syncs are over.
func (w *world) awaitOnlySyncsLeft() {
	w.Helper()
	testkit.Eventually(w.T, "only syncs are left", func() string {
		return zero(w.count("SELECT count(*) FROM operation WHERE resource_type <> 'SyncOperation' AND state IN ('Waiting', 'In_Progress')"))
	})
}

func (w *world) instance() string {
	w.Helper()
	instances, err := w.Store.Instances(w.ctx)
	w.must(err)
	return string(instances[0].ID)
}

func TestIsolation_AnOperationByHandDoesNothingToAnothers(t *testing.T) {
	each(t, func(w *world) {
		victim, thief := w.deployed(w.tenant(), "shop"), w.deployed(w.tenant(), "shop")
		w.awaitQuiet()
		before := w.application(victim)
		w.StopAgent()
		// Under the id of an operation of the thief's own, on what is the victim's.
		own := w.announce(thief)
		forged := operationCR(w.EngineNamespace, string(own.ID), string(victim.UID))
		w.must(client.IgnoreAlreadyExists(w.api.Create(w.ctx, forged)))
		w.StartAgent()
		w.create(testkit.Deployment(thief.Namespace, "after"))
		testkit.Steadily(w.T, 500*time.Millisecond, "the victim's Application", func() string {
			if after := w.application(victim); after == nil || after.ResourceVersion != before.ResourceVersion {
				return "was touched"
			}
			return ""
		})
		if n := w.count("SELECT count(*) FROM operation WHERE resource_id = $1 AND state IN ('Waiting', 'In_Progress')", string(victim.UID)); n != 0 {
			t.Errorf("%d operations on the victim's", n)
		}
	})
}

// literals finds text that an engine would read as a pattern.
func literals(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		if strings.ContainsAny(v.String(), `*?[]{}!\^`) {
			t.Errorf("%s is a pattern: %q", path, v.String())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			literals(t, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			literals(t, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			literals(t, path, v.Elem())
		}
	default:
	}
}

func TestIsolation_ProjectsHoldExactLiterals(t *testing.T) {
	git := gitForBoth(t)
	each(t, func(w *world) {
		a, b := w.furnish("a", git), w.furnish("b", git)
		for i, own := range []furnished{a, b} {
			other := []furnished{b, a}[i]
			spec := w.project(own.namespace).Spec
			denied := map[string]bool{}
			for _, kind := range spec.NamespaceResourceBlacklist {
				denied[kind.Group+" "+kind.Kind] = true
			}
			for _, kind := range []string{"argoproj.io *", "managed-gitops.redhat.com *", "managedgitops.io *", rbacv1.GroupName + " *"} {
				if !denied[kind] {
					t.Errorf("%s is not denied: %v", kind, denied)
				}
			}
			if len(spec.ClusterResourceWhitelist) != 0 {
				t.Errorf("cluster resources are allowed that were not granted: %v", spec.ClusterResourceWhitelist)
			}
			spec.NamespaceResourceBlacklist = nil
			literals(w.T, "spec", reflect.ValueOf(spec))
			want := map[argov1alpha1.ApplicationDestination]bool{
				{Name: w.clusterSecret(own.environment).Name, Namespace: "apps"}:     true,
				{Server: "https://kubernetes.default.svc", Namespace: own.namespace}: true,
			}
			for _, d := range spec.Destinations {
				if !want[d] {
					t.Errorf("the project allows %+v", d)
				}
				delete(want, d)
			}
			if len(want) != 0 {
				t.Errorf("the project does not allow %v", want)
			}
			for _, account := range spec.DestinationServiceAccounts {
				if account.Namespace != own.namespace || account.DefaultServiceAccount != own.namespace+":"+domain.DeployerServiceAccount {
					t.Errorf("what is deployed is not deployed as the tenant: %+v", account)
				}
			}
			if text := fmt.Sprint(spec); strings.Contains(text, other.namespace+" ") || strings.Contains(text, string(other.environment.UID)) {
				t.Errorf("the project names the other's: %s", text)
			}
		}
	}, service.WithGitAuthorities(git.Authorities))
}

func TestIsolation_RepositoriesThatArePatternsAreRefused(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		w.login(ns, "login", "me", "good")
		for i, repository := range []string{
			"*", "https://*", "https://git.example.com/*", "https://*.example.com/shop", "https://git.example.com/{a,b}",
			"https://git.example.com/[a-z]", "!https://git.example.com/shop", "https://git.example.com/sho?", "https://git.example.com/^shop",
			"git@git.example.com:*", `https://git.example.com/\shop`,
		} {
			name := fmt.Sprintf("pattern-%d", i)
			d := testkit.Deployment(ns, name, testkit.WithRepo(repository))
			if err := w.api.Create(w.ctx, d); err == nil {
				w.awaitStatus(d, repository, shows(v1alpha1.ConditionErrorOccurred, "spec.source.repoURL"))
			} else if !apierrors.IsInvalid(err) {
				t.Errorf("%q: %v", repository, err)
			}
			c := &v1alpha1.GitOpsDeploymentRepositoryCredential{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
				Spec:       v1alpha1.GitOpsDeploymentRepositoryCredentialSpec{Repository: repository, Secret: "login"},
			}
			if err := w.api.Create(w.ctx, c); err == nil {
				w.awaitChecked(c, v1alpha1.ReasonInvalidRepositoryURL, "spec.repository")
			} else if !apierrors.IsInvalid(err) {
				t.Errorf("%q: %v", repository, err)
			}
		}
		w.ownsNothing(ns)
	})
}
