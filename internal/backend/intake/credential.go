// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
)

// CredentialCluster is what the step needs of the cluster with the tenants'
// namespaces. What is not there is nil.
type CredentialCluster interface {
	Credential(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentRepositoryCredential, error)
	CredentialNow(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentRepositoryCredential, error)
	OlderCredentials(ctx context.Context, cr *v1alpha1.GitOpsDeploymentRepositoryCredential) (int, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	Namespace(ctx context.Context, name string) (kube.Namespace, error)
}

// CredentialStore is where credentials are taken in.
type CredentialStore interface {
	store.Credentials
	Placement(ctx context.Context, tenant domain.TenantID) (store.Placement, error)
	Apply(ctx context.Context, c store.Change) ([]store.Operation, error)
}

// CredentialProjector shows a tenant how its credential is.
type CredentialProjector interface {
	// ShowCredential writes the verdict; with keep, an answer that was shown before
	// and still stands stays.
	ShowCredential(ctx context.Context, cr *v1alpha1.GitOpsDeploymentRepositoryCredential, v CredentialVerdict, keep bool) error
}

// Credentials takes GitOpsDeploymentRepositoryCredentials in.
type Credentials struct {
	Cluster    CredentialCluster
	Store      CredentialStore
	Outbox     Outbox
	Status     CredentialProjector
	Sealer     Sealer
	Probes     Prober[CheckAnswer]
	Check      func(ctx context.Context, repository string, c gitremote.Credential) error
	References SecretReferences
	Quotas     Quotas
	Policy     Policy
	// Key is the queue's key for a CR, by which a probe's end is told.
	Key   func(namespace, name string) fairq.Key
	NewID func() domain.OperationID
	Now   func() time.Time
	Log   *slog.Logger

	// checked is when the repository was last asked about just this, by CR.
	checked sync.Map // UID → lastCheck
}

type lastCheck struct {
	digest string
	at     time.Time
	// answer stands until the repository is asked again. The write that followed it
	// may have failed, and must not wait for that.
	answer CheckAnswer
}

// Step makes the rows under one name follow the CR under that name and its
// Secret, and the CR's status follow the rows.
func (c *Credentials) Step(ctx context.Context, namespace, name string) error {
	return again(func() error { return c.try(ctx, namespace, name) })
}

func (c *Credentials) try(ctx context.Context, namespace, name string) error {
	f, err := c.gather(ctx, namespace, name)
	if err != nil {
		return err
	}
	if f.cr != nil {
		ctx = telemetry.WithWork(ctx, telemetry.Work{Tenant: string(f.tenant), UID: string(f.cr.UID)})
	}
	wait := c.ask(&f, c.Key(namespace, name))
	d := decideCredential(f)
	if err := c.act(ctx, f, d); err != nil {
		return err
	}
	if f.cr == nil || !f.cr.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := c.Status.ShowCredential(ctx, f.cr, d.verdict, d.keep); err != nil {
		return err
	}
	if wait > 0 {
		return &domain.Later{After: wait}
	}
	return nil
}

func (c *Credentials) gather(ctx context.Context, namespace, name string) (credentialFacts, error) {
	f := credentialFacts{newID: c.NewID}
	var err error
	if f.cr, err = c.Cluster.Credential(ctx, namespace, name); err != nil {
		return f, fmt.Errorf("read GitOpsDeploymentRepositoryCredential: %w", err)
	}
	if f.chains, err = c.Store.CredentialChains(ctx, namespace, name); err != nil {
		return f, err
	}
	foreign := func(chain store.CredentialChain) bool { return f.cr == nil || chain.Link.UID != string(f.cr.UID) }
	if slices.ContainsFunc(f.chains, foreign) {
		// Before anything is removed, the API server is asked.
		if f.cr, err = c.Cluster.CredentialNow(ctx, namespace, name); err != nil {
			return f, fmt.Errorf("read the GitOpsDeploymentRepositoryCredential as it is now: %w", err)
		}
	}
	if f.cr == nil || !f.cr.DeletionTimestamp.IsZero() {
		c.References.Release(referrer(v1alpha1.RepositoryCredentialSecretType, namespace, name))
		return f, nil
	}
	ns, err := c.Cluster.Namespace(ctx, namespace)
	if err != nil {
		return f, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	f.tenant, f.terminating, f.quotas = ns.UID, ns.Terminating, c.Quotas.In(ns.Annotations)
	if f.older, err = c.Cluster.OlderCredentials(ctx, f.cr); err != nil {
		return f, fmt.Errorf("count the namespace's credentials: %w", err)
	}
	if f.placement, err = c.Store.Placement(ctx, f.tenant); err != nil && !errors.Is(err, domain.ErrNotFound) {
		return f, err
	}
	err = c.given(ctx, &f)
	return f, err
}

// given reads the Secret, and whether the row holds the same.
func (c *Credentials) given(ctx context.Context, f *credentialFacts) error {
	cr := f.cr
	c.References.Refer(referrer(v1alpha1.RepositoryCredentialSecretType, cr.Namespace, cr.Name), cr.Namespace, cr.Spec.Secret)
	secret, err := c.Cluster.Secret(ctx, cr.Namespace, cr.Spec.Secret)
	if err != nil {
		return fmt.Errorf("read Secret: %w", err)
	}
	f.repository, f.url = repositoryOf(cr, c.Policy)
	f.given, f.secret = credentialOf(cr, secret)
	if f.url != nil || f.secret != nil {
		return nil
	}
	for _, chain := range f.chains {
		if chain.Link.UID == string(cr.UID) && chain.Link.Tenant == f.tenant && chain.Credential != nil {
			f.same, err = c.holds(ctx, *chain.Credential, *f)
			return err
		}
	}
	return nil
}

// repositoryOf gives the address in the form that is kept. It is pure.
func repositoryOf(cr *v1alpha1.GitOpsDeploymentRepositoryCredential, p Policy) (string, *CredentialProblem) {
	var forms []gitremote.Form
	if p.AllowPlainHTTP {
		forms = append(forms, gitremote.PlainHTTP)
	}
	if _, err := gitremote.Parse(cr.Spec.Repository, forms...); err != nil {
		return "", &CredentialProblem{v1alpha1.ReasonInvalidRepositoryURL, "spec.repository: " + err.Error()}
	}
	if strings.ContainsAny(cr.Spec.Repository, domain.Globs) {
		return "", &CredentialProblem{v1alpha1.ReasonInvalidRepositoryURL, "spec.repository contains one of " + domain.Globs + ", which no GitOpsDeployment can have in its repository; write it without them, percent-encoded where need be"}
	}
	return cr.Spec.Repository, nil
}

// credentialOf takes a credential from its Secret. It is pure.
func credentialOf(cr *v1alpha1.GitOpsDeploymentRepositoryCredential, secret *corev1.Secret) (gitremote.Credential, *CredentialProblem) {
	name := cr.Spec.Secret
	refuse := func(reason v1alpha1.ConditionReason, format string, args ...any) (gitremote.Credential, *CredentialProblem) {
		return gitremote.Credential{}, &CredentialProblem{reason, fmt.Sprintf(format, args...)}
	}
	switch {
	case name == "":
		return refuse(v1alpha1.ReasonSecretNotSpecified, "spec.secret is empty: name the Secret with the credentials")
	case secret == nil:
		return refuse(v1alpha1.ReasonSecretNotFound, "spec.secret names Secret %s, which is not in this namespace: create it, of type %s", name, v1alpha1.RepositoryCredentialSecretType)
	case secret.Type != v1alpha1.RepositoryCredentialSecretType:
		return refuse(v1alpha1.ReasonSecretInvalidType, "Secret %s is not of type %s: create it anew with that type", name, v1alpha1.RepositoryCredentialSecretType)
	}
	given := gitremote.Credential{
		Username: string(secret.Data[v1alpha1.RepositoryCredentialSecretUsernameKey]),
		Password: string(secret.Data[v1alpha1.RepositoryCredentialSecretPasswordKey]),

		SSHPrivateKey: string(secret.Data[v1alpha1.RepositoryCredentialSecretSSHKeyKey]),
	}
	if given.Password == "" && given.SSHPrivateKey == "" {
		return refuse(v1alpha1.ReasonInvalidCredentials, "Secret %s has neither the key password (with username, or alone for a token) nor the key sshPrivateKey: put one of them there", name)
	}
	return given, nil
}

func repositoryRow(t domain.TenantID, id domain.CredentialID, repository string) sealedRow {
	return sealedRow{tenant: t, table: "repository_credentials", id: domain.SealedCredential(id, repository)}
}

// holds says whether a row holds what is given.
func (c *Credentials) holds(ctx context.Context, row store.RepositoryCredential, f credentialFacts) (bool, error) {
	if row.Repository != f.repository {
		return false, nil
	}
	for column, pair := range map[string][2][]byte{
		"sealed_username": {row.SealedUsername, []byte(f.given.Username)},
		"sealed_password": {row.SealedPassword, []byte(f.given.Password)},
		"sealed_ssh_key":  {row.SealedSSHKey, []byte(f.given.SSHPrivateKey)},
	} {
		sealed, given := pair[0], pair[1]
		if sealed == nil {
			if len(given) > 0 {
				return false, nil
			}
			continue
		}
		text, err := c.Sealer.Open(ctx, repositoryRow(row.Tenant, row.ID, row.Repository).at(column), seal.Sealed{KeyID: row.KeyID, Text: sealed})
		if errors.Is(err, seal.ErrNotAuthentic) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !bytes.Equal(text, given) {
			return false, nil
		}
	}
	return true, nil
}

// ask has the repository asked where that is needed: about what is new, and now
// and then. It says when to look again.
func (c *Credentials) ask(f *credentialFacts, key fairq.Key) time.Duration {
	if f.cr == nil || !f.cr.DeletionTimestamp.IsZero() || f.url != nil || f.secret != nil || f.terminating || f.placement.Instance == "" {
		c.Probes.Forget(key)
		// What is shown from now on is another problem, or nothing at all. Once that
		// is over the repository's answer has to be shown again, so it is asked again.
		for _, chain := range f.chains {
			c.checked.Delete(chain.Link.UID)
		}
		if f.cr != nil {
			c.checked.Delete(string(f.cr.UID))
		}
		return 0
	}
	asking := digest([]byte(f.repository), []byte(f.given.Username), []byte(f.given.Password), []byte(f.given.SSHPrivateKey))
	if v, ok := c.checked.Load(string(f.cr.UID)); ok {
		last := v.(lastCheck)
		again := recheckAfterFailure
		if last.answer.Problem == nil {
			again = recheckAfterOK
		}
		if left := again - c.Now().Sub(last.at); last.digest == asking && left > 0 {
			f.answer = &last.answer
			return left
		}
	}
	repository, given := f.repository, f.given
	answer, answered := c.Probes.Ask(key, asking, func(ctx context.Context) CheckAnswer { return c.check(ctx, repository, given) })
	if !answered {
		return 0
	}
	f.answer = &answer
	c.checked.Store(string(f.cr.UID), lastCheck{digest: asking, at: c.Now(), answer: answer})
	if answer.Problem == nil {
		return recheckAfterOK
	}
	return recheckAfterFailure
}

func (c *Credentials) check(ctx context.Context, repository string, given gitremote.Credential) CheckAnswer {
	err := c.Check(ctx, repository, given)
	switch {
	case err == nil:
		return CheckAnswer{}
	case errors.Is(err, gitremote.ErrUnreachable):
		return CheckAnswer{Problem: &CredentialProblem{v1alpha1.ReasonInvalidCredentials, err.Error() + "; this will be tried again"}, Unreachable: true}
	case errors.Is(err, gitremote.ErrInvalidURL), errors.Is(err, gitremote.ErrDenied), errors.Is(err, gitremote.ErrNotGit), errors.Is(err, gitremote.ErrNotFound):
		return CheckAnswer{Problem: &CredentialProblem{v1alpha1.ReasonInvalidRepositoryURL, err.Error()}}
	default:
		return CheckAnswer{Problem: &CredentialProblem{v1alpha1.ReasonInvalidCredentials, err.Error()}}
	}
}

func (c *Credentials) act(ctx context.Context, f credentialFacts, d credentialDecision) error {
	if d.change == nil {
		return nil
	}
	if d.seal {
		row := &d.change.PutCredential.Credential
		sealed, keyID, err := sealColumns(ctx, c.Sealer, repositoryRow(f.tenant, row.ID, row.Repository), map[string][]byte{
			"sealed_username": orNilBytes(f.given.Username), "sealed_password": orNilBytes(f.given.Password), "sealed_ssh_key": orNilBytes(f.given.SSHPrivateKey),
		})
		if err != nil {
			return err
		}
		row.SealedUsername, row.SealedPassword, row.SealedSSHKey, row.KeyID = sealed["sealed_username"], sealed["sealed_password"], sealed["sealed_ssh_key"], keyID
	}
	return applyAndAnnounce(ctx, c.Store, c.Outbox, *d.change)
}

func orNilBytes(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}
