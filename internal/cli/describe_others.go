// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

func showSyncRun(p *page, r *v1alpha1.GitOpsDeploymentSyncRun, now time.Time) {
	v := judge(r)
	state := string(v.state)
	if v.message != "" {
		state += ": " + v.message
	}
	p.facts(
		fact{"State", state},
		fact{"Deployment", r.Spec.GitopsDeploymentName},
		fact{"Asked for", firstText(r.Spec.RevisionID, "the newest commit of the deployment's target revision")},
		fact{"Revision", r.Status.Revision},
		fact{"Sync", string(r.Status.SyncStatus)},
		fact{"Health", string(r.Status.Health)},
		fact{"Started", strings.TrimPrefix(since(now, r.Status.StartedAt), "-")},
		fact{"Ended", strings.TrimPrefix(since(now, r.Status.FinishedAt), "-")},
		fact{"Duration", strings.TrimPrefix(took(r.Status.StartedAt, r.Status.FinishedAt), "-")},
		fact{"Age", age(r, now)},
	)
	showConditions(p, r.Status.Conditions, now)
}

func showEnvironment(p *page, e *v1alpha1.GitOpsDeploymentManagedEnvironment, now time.Time) {
	p.facts(append(environmentFacts(e), fact{"Secret", e.Spec.CredentialsSecret}, fact{"Age", age(e, now)})...)
	showPlainConditions(p, e.Status.Conditions, now)
}

func environmentFacts(e *v1alpha1.GitOpsDeploymentManagedEnvironment) []fact {
	a := environmentAnswer(e)
	connected := "not known yet"
	switch {
	case a.good:
		connected = "yes"
	case a.known:
		connected = "no, " + a.trouble()
	}
	namespaces := "all that the credentials allow"
	if len(e.Spec.Namespaces) > 0 {
		namespaces = strings.Join(e.Spec.Namespaces, ", ")
		if e.Spec.ClusterResources {
			namespaces += ", and resources without a namespace"
		}
	}
	certificate := ""
	if e.Spec.AllowInsecureSkipTLSVerify {
		certificate = "not checked: whoever sits in between can read the credentials"
	}
	return []fact{
		{"Connected", connected},
		{"API URL", e.Spec.APIURL},
		{"Namespaces", namespaces},
		{"Automated", yesNo(e.Spec.AutomatedDeploymentsAllowed())},
		{"Certificate", certificate},
	}
}

func showCredential(p *page, c *v1alpha1.GitOpsDeploymentRepositoryCredential, now time.Time) {
	a := credentialAnswer(c)
	valid := "not known yet"
	switch {
	case a.good:
		valid = "yes"
	case a.known:
		valid = "no, " + a.trouble()
	}
	p.facts(
		fact{"Valid", valid},
		fact{"Repository", c.Spec.Repository},
		fact{"Secret", c.Spec.Secret},
		fact{"Age", age(c, now)},
	)
	showPlainConditions(p, c.Status.Conditions, now)
}

// showPlainConditions is for the kinds whose conditions are Kubernetes' own and
// tell of good as well as bad.
func showPlainConditions(p *page, conditions []metav1.Condition, now time.Time) {
	if len(conditions) == 0 {
		return
	}
	p.section("Conditions")
	for _, c := range conditions {
		p.line("%s is %s for %s: %s", c.Type, c.Status, ago(now, &c.LastTransitionTime), firstText(c.Message, c.Reason))
	}
}
