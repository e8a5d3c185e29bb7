// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"time"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/store"
)

// credentialFacts is all that the decision about one name looks at.
type credentialFacts struct {
	// cr is nil where there is no CR under the name.
	cr          *v1alpha1.GitOpsDeploymentRepositoryCredential
	tenant      domain.TenantID
	terminating bool
	older       int
	quotas      Quotas
	chains      []store.CredentialChain
	placement   store.Placement

	// url and secret are what is wrong with the address or the Secret, nil where
	// nothing is.
	url, secret *CredentialProblem
	given       gitremote.Credential
	repository  string
	// same says that the row holds just this.
	same bool
	// answer is the repository's, nil while it has not answered or was not asked.
	answer *CheckAnswer

	newID func() domain.OperationID
}

// CredentialProblem is why a credential cannot be used.
type CredentialProblem struct {
	Reason  v1alpha1.ConditionReason
	Message string
}

// CheckAnswer is what a repository answered.
type CheckAnswer struct {
	// Problem is nil where it took the credential.
	Problem *CredentialProblem
	// Unreachable says that nobody could be asked: the credential may be good.
	Unreachable bool
}

// CredentialVerdict is what the tenant is told.
type CredentialVerdict struct {
	// URL and Secret are problems; Checked is the repository's own answer, nil while
	// there is none.
	URL, Secret *CredentialProblem
	Checked     *CheckAnswer
	// Operation is why the engine does not have it yet.
	Operation string
	// Rotated says that this has taken the place of an earlier credential.
	Rotated bool
}

// credentialDecision is what follows from the facts.
type credentialDecision struct {
	change  *store.Change
	seal    bool
	verdict CredentialVerdict
	// keep says that the answer that was shown before still stands.
	keep bool
}

// recheckAfterOK and recheckAfterFailure are when a repository is asked again
// although nothing has changed.
const (
	recheckAfterOK      = 30 * time.Minute
	recheckAfterFailure = 2 * time.Minute
)

// decideCredential says what the rows under one name should be. It is pure.
func decideCredential(f credentialFacts) credentialDecision {
	var own *store.CredentialChain
	var change store.Change
	live := f.cr != nil && f.cr.DeletionTimestamp.IsZero()
	for i, c := range f.chains {
		if live && c.Link.UID == string(f.cr.UID) && c.Link.Tenant == f.tenant {
			own = &f.chains[i]
			continue
		}
		removeCredentialRow(&change, c, f.placement.Instance, f.newID)
	}
	if !live {
		return credentialDecision{change: orNil(change)}
	}
	d := credentialDecision{change: orNil(change), verdict: CredentialVerdict{URL: f.url, Secret: f.secret, Checked: f.answer}}
	if own != nil && own.Operation != nil && own.Operation.State != domain.OperationCompleted {
		d.verdict.Operation = own.Operation.Message
	}
	stored := own != nil && own.Credential != nil
	switch {
	case f.terminating:
		d.verdict.Secret = &CredentialProblem{v1alpha1.ReasonErrorOccurred, "waiting for its namespace, which is being deleted"}
		return d
	case !stored && beyond(QuotaCredentials, "GitOpsDeploymentRepositoryCredentials", f.older, f.quotas.Credentials) != nil:
		d.verdict.Secret = &CredentialProblem{ReasonQuotaExceeded, beyond(QuotaCredentials, "GitOpsDeploymentRepositoryCredentials", f.older, f.quotas.Credentials).Error()}
		return d
	case f.url != nil || f.secret != nil:
		// What the engine has stays: a typing error must not take it away.
		return d
	case f.placement.Instance == "":
		d.verdict.Secret = &CredentialProblem{v1alpha1.ReasonErrorOccurred, "waiting for a GitOps engine: none is registered and ready"}
		return d
	case f.same:
		d.keep = f.answer == nil
		return d
	case f.answer == nil || f.answer.Problem != nil && !f.answer.Unreachable:
		// Being asked, or refused by the repository: what the engine has may be better.
		d.keep = f.answer == nil
		return d
	}
	row := store.RepositoryCredential{
		ID: domain.CredentialID(f.cr.UID), Tenant: f.tenant, Instance: f.placement.Instance, Repository: f.repository,
	}
	if stored {
		row.Version = own.Credential.Version
		d.verdict.Rotated = true
	}
	if !f.placement.Settled {
		change.Tenant = &store.Tenant{ID: f.tenant, Namespace: f.cr.Namespace, Instance: f.placement.Instance}
	}
	change.PutCredential = &store.PutCredential{
		Credential: row,
		Link:       store.CRLink{Kind: store.KindCredential, UID: string(f.cr.UID), Tenant: f.tenant, Namespace: f.cr.Namespace, Name: f.cr.Name},
	}
	change.Announce = append(change.Announce, store.NewOperation{
		ID: f.newID(), Tenant: f.tenant, Instance: f.placement.Instance,
		ResourceType: domain.ResourceRepositoryCredential, ResourceID: string(row.ID),
	})
	d.change, d.seal = &change, true
	return d
}

func removeCredentialRow(change *store.Change, c store.CredentialChain, placed domain.InstanceID, newID func() domain.OperationID) {
	change.RemoveCredentials = append(change.RemoveCredentials, store.CredentialRef{ID: domain.CredentialID(c.Link.UID), Tenant: c.Link.Tenant})
	instance := placed
	if c.Credential != nil {
		instance = c.Credential.Instance
	}
	if instance == "" {
		return
	}
	change.Announce = append(change.Announce, store.NewOperation{
		ID: newID(), Tenant: c.Link.Tenant, Instance: instance,
		ResourceType: domain.ResourceRepositoryCredential, ResourceID: c.Link.UID,
	})
}
