// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"time"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/reach"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// environmentCRFacts is all that the decision about one name looks at.
type environmentCRFacts struct {
	// cr is nil where there is no CR under the name.
	cr          *v1alpha1.GitOpsDeploymentManagedEnvironment
	tenant      domain.TenantID
	terminating bool
	older       int
	quotas      Quotas
	chains      []store.EnvironmentChain
	placement   store.Placement

	// problem says why the CR and its Secret give no access; nil where they do, and
	// origin is then the digest of what they give.
	problem *reach.Problem
	origin  string
	// stored is the origin of what the row holds; empty where there is no row.
	stored string
	// renewAt is when the row's token is to be renewed, zero where that is not known.
	renewAt time.Time
	// answer is the cluster's, nil while it has not answered or was not asked.
	answer *ConnectAnswer
	// engines are the instances of the tenants in chains, where some of them go.
	engines map[domain.TenantID]domain.InstanceID
	// removed are accounts on clusters that have been taken away, or given up.
	removed map[domain.EnvironmentID]bool

	now   time.Time
	newID func() domain.OperationID
}

// ConnectAnswer is what became of an attempt to connect.
type ConnectAnswer struct {
	Connected reach.Connected
	Problem   *reach.Problem
}

// environmentDecision is what follows from the facts.
type environmentDecision struct {
	change *store.Change
	// put says that change.PutEnvironment still lacks the sealed access, which is the
	// answer's.
	put *reach.Connected
	// renewAt is when the token of what is put is to be renewed.
	renewAt time.Time
	// condition is what the tenant is told; nil where there is nothing new.
	condition *EnvironmentCondition
	// later is when to look again, zero for never.
	later time.Duration
}

// EnvironmentCondition is the condition ConnectionInitializationSucceeded.
type EnvironmentCondition struct {
	Reason  v1alpha1.ConditionReason
	Message string
	// Rotated says that other credentials have taken the place of the ones before.
	Rotated bool
}

const (
	// reconnectAfter is when a cluster that could not be reached is tried again.
	reconnectAfter = time.Minute
	// ReasonConnecting is the condition's reason while a cluster is being asked.
	ReasonConnecting v1alpha1.ConditionReason = "Connecting"
	// ReasonQuotaExceeded is the reason of what a quota keeps out.
	ReasonQuotaExceeded v1alpha1.ConditionReason = "QuotaExceeded"
)

// decideEnvironment says what the rows under one name should be. It is pure.
func decideEnvironment(f environmentCRFacts) environmentDecision {
	var own *store.EnvironmentChain
	var change store.Change
	live := f.cr != nil && f.cr.DeletionTimestamp.IsZero()
	for i, c := range f.chains {
		if live && c.Link.UID == string(f.cr.UID) && c.Link.Tenant == f.tenant {
			own = &f.chains[i]
			continue
		}
		if hasAccount(c) && !f.removed[c.Environment.ID] {
			// Its end on the cluster comes first; the row knows how to get there.
			continue
		}
		removeEnvironmentRow(&change, c, f.engines[c.Link.Tenant], f.newID)
	}
	if !live {
		return environmentDecision{change: orNil(change)}
	}
	d := decideLiveEnvironment(f, own, &change)
	if d.change == nil {
		d.change = orNil(change)
	}
	return d
}

func hasAccount(c store.EnvironmentChain) bool {
	return c.Environment != nil && c.Environment.Credentials != nil && c.Environment.Credentials.ServiceAccount != ""
}

func removeEnvironmentRow(change *store.Change, c store.EnvironmentChain, placed domain.InstanceID, newID func() domain.OperationID) {
	change.RemoveEnvironments = append(change.RemoveEnvironments, store.EnvironmentRef{ID: domain.EnvironmentID(c.Link.UID), Tenant: c.Link.Tenant})
	instance := placed
	if c.Operation != nil {
		instance = c.Operation.Instance
	}
	if instance == "" {
		return
	}
	change.Announce = append(change.Announce, store.NewOperation{
		ID: newID(), Tenant: c.Link.Tenant, Instance: instance,
		ResourceType: domain.ResourceManagedEnvironment, ResourceID: c.Link.UID,
	})
}

func decideLiveEnvironment(f environmentCRFacts, own *store.EnvironmentChain, change *store.Change) environmentDecision {
	say := func(reason v1alpha1.ConditionReason, message string) environmentDecision {
		return environmentDecision{condition: &EnvironmentCondition{Reason: reason, Message: message}}
	}
	connected := own != nil && own.Environment != nil && own.Environment.Credentials != nil
	switch {
	case f.terminating:
		return say(v1alpha1.ReasonKubernetesError, "waiting for its namespace, which is being deleted")
	case !connected && beyond(QuotaEnvironments, "GitOpsDeploymentManagedEnvironments", f.older, f.quotas.Environments) != nil:
		return say(ReasonQuotaExceeded, beyond(QuotaEnvironments, "GitOpsDeploymentManagedEnvironments", f.older, f.quotas.Environments).Error())
	case f.problem != nil:
		// What was connected before stays so: a typing error must not take it away.
		return say(f.problem.Reason, f.problem.Message)
	case f.placement.Instance == "":
		return say(v1alpha1.ReasonUnknownError, "waiting for a GitOps engine: none is registered and ready")
	case f.answer != nil && f.answer.Problem != nil:
		d := say(f.answer.Problem.Reason, f.answer.Problem.Message)
		d.later = reconnectAfter
		return d
	case f.answer != nil:
		return putAnswered(f, own, change)
	case !connected:
		return say(ReasonConnecting, "asking "+f.cr.Spec.APIURL)
	case f.stored != f.origin:
		// Being asked. What is there meanwhile is still good.
		return environmentDecision{}
	case own.Environment.AllowAutomated != f.cr.Spec.AutomatedDeploymentsAllowed() || own.Environment.Name != f.cr.Name:
		e := *own.Environment
		e.AllowAutomated, e.Name = f.cr.Spec.AutomatedDeploymentsAllowed(), f.cr.Name
		put(f, change, e)
		return environmentDecision{change: change, condition: &EnvironmentCondition{Reason: v1alpha1.ReasonSucceeded}, later: renewal(*e.Credentials, f.renewAt, f.now)}
	default:
		d := say(v1alpha1.ReasonSucceeded, "")
		if op := own.Operation; op != nil && op.State != domain.OperationCompleted && op.Message != "" {
			d = say(v1alpha1.ReasonUnableToCreateClusterCredentials, op.Message)
		}
		d.later = renewal(*own.Environment.Credentials, f.renewAt, f.now)
		return d
	}
}

// putAnswered takes in a cluster that has answered.
func putAnswered(f environmentCRFacts, own *store.EnvironmentChain, change *store.Change) environmentDecision {
	c := f.answer.Connected
	e := store.Environment{
		ID: domain.EnvironmentID(f.cr.UID), Tenant: f.tenant, Name: f.cr.Name, AllowAutomated: f.cr.Spec.AutomatedDeploymentsAllowed(),
		Credentials: &store.ClusterCredentials{
			Host: c.Access.Server, Namespaces: slices.Sorted(slices.Values(f.cr.Spec.Namespaces)), ClusterResources: f.cr.Spec.ClusterResources,
			ServiceAccount: c.ServiceAccount, TokenExpires: c.Expires,
		},
	}
	rotated := own != nil && own.Environment != nil && own.Environment.Credentials != nil
	if rotated {
		e.Credentials.Version = own.Environment.Credentials.Version
	}
	put(f, change, e)
	renewAt := renewalOf(c.Expires, f.now)
	return environmentDecision{
		change: change, put: &c, condition: &EnvironmentCondition{Reason: v1alpha1.ReasonSucceeded, Rotated: rotated},
		renewAt: renewAt, later: renewal(*e.Credentials, renewAt, f.now),
	}
}

func put(f environmentCRFacts, change *store.Change, e store.Environment) {
	if !f.placement.Settled {
		change.Tenant = &store.Tenant{ID: f.tenant, Namespace: f.cr.Namespace, Instance: f.placement.Instance}
	}
	change.PutEnvironment = &store.PutEnvironment{
		Environment: e, Instance: f.placement.Instance,
		Link: store.CRLink{Kind: store.KindEnvironment, UID: string(f.cr.UID), Tenant: f.tenant, Namespace: f.cr.Namespace, Name: f.cr.Name},
	}
	change.Announce = append(change.Announce, store.NewOperation{
		ID: f.newID(), Tenant: f.tenant, Instance: f.placement.Instance,
		ResourceType: domain.ResourceManagedEnvironment, ResourceID: string(e.ID),
	})
}

// renewal is how long a token may still be used before it is time for another, at
// least a minute. Zero for what does not end.
func renewal(c store.ClusterCredentials, renewAt, now time.Time) time.Duration {
	if c.TokenExpires.IsZero() {
		return 0
	}
	if renewAt.IsZero() {
		renewAt = c.TokenExpires.Add(-renewBefore)
	}
	return max(renewAt.Sub(now), time.Minute)
}

// renewBefore is how long before its end a token is renewed whose beginning is not
// known: after a restart.
const renewBefore = tokenLifetimeAsked / 3

// tokenLifetimeAsked is what is asked of clusters, see package reach.
const tokenLifetimeAsked = 24 * time.Hour

// renewalOf is when a token that was just given is to be renewed: after two thirds
// of its life, however short the cluster has made it. A fixed time before its end
// would have a short one renewed again and again.
func renewalOf(expires, now time.Time) time.Time {
	if expires.IsZero() {
		return time.Time{}
	}
	return now.Add(expires.Sub(now) * 2 / 3)
}

// due says whether the row's token is to be renewed now.
func due(c *store.ClusterCredentials, renewAt, now time.Time) bool {
	switch {
	case c == nil || c.TokenExpires.IsZero():
		return false
	case renewAt.IsZero():
		return c.TokenExpires.Sub(now) <= renewBefore
	default:
		return !now.Before(renewAt)
	}
}
