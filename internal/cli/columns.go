// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// columns are a kind's table: the headers after NAME, those that only -o wide
// shows, and the cells of an object for each. The message comes last, because it
// is long.
type columns struct {
	headers, wide []string
	cells         func(o client.Object, now time.Time) (narrow, wide []string, message string)
}

func (c columns) header(wide bool) []string {
	row := append([]string{"NAME"}, c.headers...)
	if wide {
		row = append(row, c.wide...)
	}
	return append(row, "MESSAGE")
}

func (c columns) row(o client.Object, now time.Time, wide bool) []string {
	narrow, more, message := c.cells(o, now)
	message = plain(message)
	row := append([]string{o.GetName()}, narrow...)
	if wide {
		return append(append(row, more...), message)
	}
	return append(row, shortened(message))
}

func age(o client.Object, now time.Time) string {
	created := o.GetCreationTimestamp()
	return ago(now, &created)
}

func deploymentColumns() columns {
	return columns{
		headers: []string{"SYNC", "HEALTH", "REVISION", "AGE"},
		wide:    []string{"TYPE", "REPOSITORY", "PATH", "TARGET", "ENVIRONMENT"},
		cells: func(o client.Object, now time.Time) (narrow, wide []string, message string) {
			d, ok := o.(*v1alpha1.GitOpsDeployment)
			if !ok {
				return nil, nil, ""
			}
			narrow = []string{orDash(string(d.Status.Sync.Status)), orDash(string(d.Status.Health.Status)), short(d.Status.Sync.Revision), age(o, now)}
			wide = []string{orDash(string(d.Spec.Type)), d.Spec.Source.RepoURL, orDash(d.Spec.Source.Path), orDash(d.Spec.Source.TargetRevision), orDash(d.Spec.Destination.Environment)}
			message = errorMessage(d.Status.Conditions)
			if message == "" && d.Status.Health.Status != v1alpha1.HealthHealthy {
				message = d.Status.Health.Message
			}
			return narrow, wide, message
		},
	}
}

func syncRunColumns() columns {
	return columns{
		headers: []string{"DEPLOYMENT", "STATE", "REVISION", "SYNC", "HEALTH", "AGE"},
		wide:    []string{"ASKED FOR", "DURATION"},
		cells: func(o client.Object, now time.Time) (narrow, wide []string, message string) {
			r, ok := o.(*v1alpha1.GitOpsDeploymentSyncRun)
			if !ok {
				return nil, nil, ""
			}
			v := judge(r)
			narrow = []string{r.Spec.GitopsDeploymentName, string(v.state), short(r.Status.Revision), orDash(string(r.Status.SyncStatus)), orDash(string(r.Status.Health)), age(o, now)}
			return narrow, []string{short(r.Spec.RevisionID), took(r.Status.StartedAt, r.Status.FinishedAt)}, v.trouble()
		},
	}
}

func environmentColumns() columns {
	return columns{
		headers: []string{"CONNECTED", "API URL", "AGE"},
		wide:    []string{"REASON", "SECRET", "NAMESPACES", "AUTOMATED"},
		cells: func(o client.Object, now time.Time) (narrow, wide []string, message string) {
			e, ok := o.(*v1alpha1.GitOpsDeploymentManagedEnvironment)
			if !ok {
				return nil, nil, ""
			}
			a := environmentAnswer(e)
			narrow = []string{a.word("yes", "no"), e.Spec.APIURL, age(o, now)}
			wide = []string{orDash(a.reason), e.Spec.CredentialsSecret, orDash(strings.Join(e.Spec.Namespaces, ",")), yesNo(e.Spec.AutomatedDeploymentsAllowed())}
			return narrow, wide, a.trouble()
		},
	}
}

func credentialColumns() columns {
	return columns{
		headers: []string{"VALID", "REPOSITORY", "AGE"},
		wide:    []string{"REASON", "SECRET"},
		cells: func(o client.Object, now time.Time) (narrow, wide []string, message string) {
			c, ok := o.(*v1alpha1.GitOpsDeploymentRepositoryCredential)
			if !ok {
				return nil, nil, ""
			}
			a := credentialAnswer(c)
			return []string{a.word("yes", "no"), c.Spec.Repository, age(o, now)}, []string{orDash(a.reason), c.Spec.Secret}, a.trouble()
		},
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// errorMessage is the message of the first condition that tells of an error.
// The service sets nothing but errors and warnings as conditions that hold; a
// run's Succeeded is the exception.
func errorMessage(conditions []v1alpha1.Condition) string {
	for _, c := range conditions {
		if c.Status == metav1.ConditionTrue && c.Type != v1alpha1.ConditionSucceeded {
			if c.Message == "" {
				return string(c.Type)
			}
			return c.Message
		}
	}
	return ""
}
