// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// Violation is what the schema found wrong with a row.
type Violation string

// The violations that both databases tell apart.
const (
	Duplicate     Violation = "duplicate"
	MissingParent Violation = "missing parent"
	Check         Violation = "check"
	NotNull       Violation = "not null"
	OtherFailure  Violation = "something else"
)

// Subject is a fresh, migrated store under test.
type Subject struct {
	Store store.Store
	// Another is a second user of the same database, as a second backend would
	// be: another Store where the database is for several processes.
	Another store.Store
	// Raw reaches the same tables past the store, as an operator would.
	Raw *sql.DB
	// Time gives what Raw takes for a time.
	Time func(time.Time) any
	// Violation says what an error of Raw is about.
	Violation func(error) Violation
}

// part is one behaviour.
type part struct {
	name string
	run  func(*testing.T, world)
}

// Run is the whole suite.
func Run(t *testing.T, fresh func(*testing.T) Subject) {
	run(t, fresh, []part{
		{"a new deployment of a new tenant", testCreate},
		{"a further deployment of a known tenant", testFurther},
		{"an update of a deployment", testUpdate},
		{"a removal takes all that hangs on it", testRemove},
		{"another UID under the same name", testRecreate},
		{"a decision is written whole or not at all", testAtomic},
		{"what a tenant may not refer to", testForeignReferences},
		{"a damaged spec", testDamagedSpec},
		{"placement", testPlacement},
		{"the latest operation", testLatestOperation},
		{"a waiting operation is reused", testReuse},
		{"a moved resource has an operation on each instance", testReuseIsPerInstance},
		{"finishing an operation", testFinish},
		{"a task", testTask},
		{"unfinished operations come in pages", testUnfinished},
		{"ended operations are collected", testCollect},
		{"states are ordered", testSaveState},
		{"a state with text that no database likes", testSaveStateOddText},
		{"observed states come in pages", testObserved},
		{"links and applications come in pages", testInventory},
		{"links of other kinds come in pages", testCRLinks},
		{"the schema's constraints", testConstraints},
		{"composite tenant keys", testCompositeKeys},
		{"removing a tenant", testRemoveTenant},
		{"removing other parents", testOtherCascades},
		{"moving an environment takes its applications along", testMoveEnvironment},
		{"the audit log is append-only", testAuditLog},
		{"a tenant's data key", testDataKey},
		{"data keys are wrapped anew in pages", testRewrap},
		{"a retired ring key wraps nothing", testRetire},
		{"data keys of tenants that are gone", testSweepDataKeys},
		{"the constraints of data keys", testDataKeyConstraints},
		{"a sync run", testSync},
		{"a sync of another tenant's application", testForeignSync},
		{"syncs end with their application", testSyncsEndWithTheirApplication},
		{"links whose rows are gone", testDanglingLinks},
		{"how a sync has gone", testSyncResult},
		{"the constraints of syncs and versions", testSyncConstraints},
		{"syncs of one application take turns", testEarlierSync},
		{"a task of each kind of resource", testTaskKinds},
		{"an environment", testEnvironment},
		{"what is not the tenant's environment", testForeignEnvironment},
		{"a put of a stale environment", testStaleEnvironment},
		{"an environment whose CR is gone", testAbandonedEnvironment},
		{"the last deployment leaves an environment", testLeaveEnvironment},
		{"a repository credential", testCredential},
		{"a refused put of a credential", testRefusedCredential},
		{"what a tenant's project is made from", testProjectUses},
		{"the history of a deployment", testHistory},
		{"removing a tenant with all its kinds", testRemoveFurnishedTenant},
		{"calls for the other kinds that cannot work", testTenantCallsFail},
		{"changes are logged", testChanges},
		{"rows edited by hand are logged", testChangesByHand},
		{"trimming the change log", testTrim},
		{"a cursor of another database", testForeignCursor},
		{"a context that ends", testContext},
		{"after closing", testClosed},
	})
	RunRaces(t, fresh)
}

// RunRaces is the part of the suite in which several write at once.
func RunRaces(t *testing.T, fresh func(*testing.T) Subject) {
	run(t, fresh, []part{
		{"two placements race", testPlacementRace},
		{"two backends take in the same deployment", testSameDeploymentTwice},
		{"reuse and finish race", testReuseRace},
		{"many writers on one application", testConcurrentWriters},
		{"states and removals race", testSaveStateRace},
		{"registering an engine", testRegisterEngine},
		{"a tenant's first data key", testFirstDataKeyRace},
		{"retiring a ring key and wrapping by it race", testRetireRace},
		{"several put one environment", testEnvironmentRace},
		{"several put one credential", testCredentialRace},
		{"an environment goes while a deployment comes", testAbandonRace},
		{"a follower misses nothing", testFollower},
	})
}

func run(t *testing.T, fresh func(*testing.T) Subject, parts []part) {
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t, world{Subject: fresh(t)})
		})
	}
}

// world is a subject with short words for what most tests begin with.
type world struct{ Subject }

const (
	cluster  = domain.ClusterID("kube-system-uid")
	engine   = domain.InstanceID("engine-uid")
	engineNS = "engine"
	alice    = domain.TenantID("alice-uid")
	bob      = domain.TenantID("bob-uid")
)

func (w world) register(t *testing.T, ids ...domain.InstanceID) {
	t.Helper()
	for _, id := range ids {
		i := store.Instance{ID: id, Cluster: cluster, Namespace: engineNS, Kind: store.EngineNone}
		if err := w.Store.RegisterEngine(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
}

// spec is a spec that differs from others with another path.
func spec(path string) domain.ApplicationSpec {
	return domain.ApplicationSpec{RepoURL: "https://example.org/repo.git", Path: path, Namespace: "ns", Automated: true}
}

func row(tenant domain.TenantID, id domain.ApplicationID) store.Application {
	return store.Application{
		ID: id, Tenant: tenant, Name: "deployment-" + string(id), Spec: spec("a"),
		Instance: engine, Environment: domain.LocalEnvironment(tenant), Generation: 1,
	}
}

func tenantRows(tenant domain.TenantID) *store.Tenant {
	return &store.Tenant{ID: tenant, Namespace: "ns-" + string(tenant), Instance: engine}
}

func announcing(a store.Application) []store.NewOperation {
	return []store.NewOperation{{
		ID: domain.NewOperationID(), Tenant: a.Tenant, Instance: a.Instance,
		ResourceType: domain.ResourceApplication, ResourceID: string(a.ID),
	}}
}

// creating is the decision to take in a deployment.
func creating(a store.Application) store.Change {
	return store.Change{
		Tenant: tenantRows(a.Tenant),
		Insert: &store.NewApplication{
			Application: a,
			Link:        store.Link{Application: a.ID, Tenant: a.Tenant, Namespace: "ns-" + string(a.Tenant), Name: a.Name},
		},
		Announce: announcing(a),
	}
}

// updating is the decision to give an application another spec.
func updating(a store.Application, path string) store.Change {
	a.Spec = spec(path)
	a.Generation++
	return store.Change{Update: &a, Announce: announcing(a)}
}

func (w world) apply(t *testing.T, c store.Change) []store.Operation {
	t.Helper()
	operations, err := w.Store.Apply(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return operations
}

// create takes in a deployment and gives its operation.
func (w world) create(t *testing.T, tenant domain.TenantID, id domain.ApplicationID) store.Operation {
	t.Helper()
	return w.apply(t, creating(row(tenant, id)))[0]
}

func (w world) finish(t *testing.T, o store.Operation, s domain.OperationState, message string) {
	t.Helper()
	if err := w.Store.Finish(t.Context(), o.ID, o.Version, s, message); err != nil {
		t.Fatal(err)
	}
}

// chain reads the one chain that a deployment is to have.
func (w world) chain(t *testing.T, a store.Application) store.Chain {
	t.Helper()
	chains, err := w.Store.Chains(t.Context(), "ns-"+string(a.Tenant), a.Name)
	if err != nil {
		t.Fatal(err)
	}
	if len(chains) != 1 {
		t.Fatalf("%d chains, want one: %+v", len(chains), chains)
	}
	return chains[0]
}

func (w world) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := w.Raw.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// count counts the rows of a table, or of a table and a condition.
func (w world) count(t *testing.T, from string) int {
	t.Helper()
	var n int
	if err := w.Raw.QueryRowContext(t.Context(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantError(t *testing.T, doing string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", doing, err, want)
	}
}

// id makes ids that sort by their number.
func id(n int) domain.ApplicationID { return domain.ApplicationID(fmt.Sprintf("uid-%05d", n)) }
