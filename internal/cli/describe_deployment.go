// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

func (d *described) showDeployment(p *page, o *v1alpha1.GitOpsDeployment, now time.Time) {
	p.facts(
		fact{"Sync", syncWords(o)},
		fact{"Health", healthWords(o.Status.Health)},
		fact{"Source", sourceWords(o.Spec.Source)},
		fact{"Destination", destinationWords(o)},
		fact{"Type", typeWords(o.Spec.Type, d.environment)},
		fact{"Options", optionWords(o.Spec.SyncPolicy)},
		fact{"Age", age(o, now)},
		fact{"Deleting", deletionWords(o, now)},
		fact{"Note", staleWords(o)},
	)
	showConditions(p, o.Status.Conditions, now)
	showResources(p, o.Status.Resources)
	showOperation(p, o.Status.OperationState, now)
	if past := pastDeployments(o.Status.History, d.runs); len(past) > 0 {
		p.section("History")
		printHistory(p.out, "  ", past[:min(len(past), shownHistory)], now, false)
	}
	showRuns(p, d.runs, now)
	if d.environment != nil {
		p.section("Environment %s", d.environment.Name)
		p.facts(environmentFacts(d.environment)...)
	}
}

// How much of each list fits on a screen.
const (
	shownHistory   = 5
	shownRuns      = 5
	shownResources = 20
)

func syncWords(o *v1alpha1.GitOpsDeployment) string {
	s := o.Status.Sync
	if s.Status == "" {
		return "not known yet"
	}
	words := string(s.Status)
	switch s.Status {
	case v1alpha1.SyncSynced:
		words += ": the cluster is as Git says"
	case v1alpha1.SyncOutOfSync:
		words += ": the cluster differs from Git"
	}
	if s.Revision != "" {
		words += ", compared with " + short(s.Revision)
	}
	return words
}

func healthWords(h v1alpha1.HealthStatus) string {
	switch {
	case h.Status == "":
		return "not known yet"
	case h.Message == "":
		return string(h.Status)
	default:
		return string(h.Status) + ": " + h.Message
	}
}

func sourceWords(s v1alpha1.ApplicationSource) string {
	target := s.TargetRevision
	if target == "" {
		target = "the default branch"
	}
	return fmt.Sprintf("%s, folder %q, at %s", s.RepoURL, s.Path, target)
}

func destinationWords(o *v1alpha1.GitOpsDeployment) string {
	namespace := firstText(o.Spec.Destination.Namespace, o.Namespace)
	if environment := o.Spec.Destination.Environment; environment != "" {
		return fmt.Sprintf("environment %s, namespace %s", environment, namespace)
	}
	return fmt.Sprintf("this cluster, namespace %s", namespace)
}

func typeWords(t v1alpha1.DeploymentType, e *v1alpha1.GitOpsDeploymentManagedEnvironment) string {
	switch {
	case t != v1alpha1.DeploymentTypeAutomated:
		return "manual: only a sync run deploys"
	case e != nil && !e.Spec.AutomatedDeploymentsAllowed():
		return "automated, but the environment allows sync runs only"
	default:
		return "automated: each new commit is deployed"
	}
}

func optionWords(s *v1alpha1.SyncPolicy) string {
	if s == nil {
		return ""
	}
	var options []string
	for _, o := range s.SyncOptions {
		options = append(options, string(o))
	}
	return strings.Join(options, ", ")
}

func deletionWords(o *v1alpha1.GitOpsDeployment, now time.Time) string {
	if o.DeletionTimestamp.IsZero() {
		return ""
	}
	return fmt.Sprintf("since %s; waits for %s", ago(now, o.DeletionTimestamp), listed(o.Finalizers))
}

// staleWords warns of a status that is older than the spec above it.
func staleWords(o *v1alpha1.GitOpsDeployment) string {
	if current(o.Generation, o.Status.ObservedGeneration) {
		return ""
	}
	return "the last edit has not been taken up yet; sync and health speak of the one before"
}

// showConditions says what holds first, and what is over in fewer words.
func showConditions(p *page, conditions []v1alpha1.Condition, now time.Time) {
	if len(conditions) == 0 {
		return
	}
	p.section("Conditions")
	sorted := slices.Clone(conditions)
	slices.SortStableFunc(sorted, func(a, b v1alpha1.Condition) int { return cmp.Compare(holds(a), holds(b)) })
	for _, c := range sorted {
		switch c.Status {
		case metav1.ConditionTrue:
			p.line("%s for %s: %s", c.Type, ago(now, c.LastTransitionTime), firstText(c.Message, string(c.Reason), "no reason given"))
		case metav1.ConditionFalse:
			p.line("%s", notHolding(c, now))
		default:
			p.line("%s is not known: %s", c.Type, firstText(c.Message, string(c.Reason), "no reason given"))
		}
	}
}

// notHolding tells an error that is over from a success that did not come.
func notHolding(c v1alpha1.Condition, now time.Time) string {
	if strings.HasSuffix(string(c.Reason), "Resolved") || c.Type != v1alpha1.ConditionSucceeded {
		return fmt.Sprintf("%s has been over for %s", c.Type, ago(now, c.LastTransitionTime))
	}
	return fmt.Sprintf("not %s: %s", c.Type, firstText(c.Message, string(c.Reason), "no reason given"))
}

func holds(c v1alpha1.Condition) int {
	switch c.Status {
	case metav1.ConditionTrue:
		return 0
	case metav1.ConditionUnknown:
		return 1
	default:
		return 2
	}
}

// worse orders health codes, worst first. What has no health is at the end:
// nothing can be wrong with it.
func worse(h *v1alpha1.HealthStatus) int {
	if h == nil {
		return 7
	}
	order := []v1alpha1.HealthStatusCode{
		v1alpha1.HealthDegraded, v1alpha1.HealthMissing, v1alpha1.HealthUnknown,
		v1alpha1.HealthProgressing, v1alpha1.HealthSuspended, "", v1alpha1.HealthHealthy,
	}
	if i := slices.Index(order, h.Status); i >= 0 {
		return i
	}
	return 2
}

// showResources groups by health, the unhealthy first, and within it by what is
// out of sync, kind and name.
func showResources(p *page, resources []v1alpha1.ResourceStatus) {
	if len(resources) == 0 {
		return
	}
	sorted := slices.Clone(resources)
	slices.SortStableFunc(sorted, func(a, b v1alpha1.ResourceStatus) int {
		return cmp.Or(
			cmp.Compare(worse(a.Health), worse(b.Health)),
			cmp.Compare(settledSync(a), settledSync(b)),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	p.section("Resources: %s", resourceSummary(sorted))
	t := newTable(p.out, "  ", "HEALTH", "SYNC", "KIND", "NAMESPACE", "NAME", "MESSAGE")
	var rows [][]string
	for _, r := range sorted[:min(len(sorted), shownResources)] {
		health, message := "-", ""
		if r.Health != nil {
			health, message = orDash(string(r.Health.Status)), r.Health.Message
		}
		rows = append(rows, []string{health, orDash(string(r.Status)), kindWithGroup(r), orDash(r.Namespace), r.Name, shortened(plain(message))})
	}
	t.print(rows...)
	if more := len(sorted) - shownResources; more > 0 {
		p.line("and %d more, no worse than these", more)
	}
}

func settledSync(r v1alpha1.ResourceStatus) int {
	if r.Status == v1alpha1.SyncSynced {
		return 1
	}
	return 0
}

func kindWithGroup(r v1alpha1.ResourceStatus) string {
	if r.Group == "" {
		return r.Kind
	}
	return r.Kind + "." + r.Group
}

// resourceSummary counts by health, in the order that is given.
func resourceSummary(sorted []v1alpha1.ResourceStatus) string {
	var codes []string
	counts := map[string]int{}
	for _, r := range sorted {
		code := "without health"
		if r.Health != nil {
			code = firstText(string(r.Health.Status), "not known yet")
		}
		if counts[code] == 0 {
			codes = append(codes, code)
		}
		counts[code]++
	}
	parts := make([]string, 0, len(codes))
	for _, code := range codes {
		parts = append(parts, fmt.Sprintf("%d %s", counts[code], code))
	}
	return strings.Join(parts, ", ")
}

func showOperation(p *page, o *v1alpha1.OperationState, now time.Time) {
	if o == nil {
		return
	}
	title, when := "Last operation", since(now, o.FinishedAt)
	if !o.Phase.Completed() {
		title, when = "Operation that runs now", "since "+ago(now, o.StartedAt)
	}
	p.section("%s", title)
	facts := []fact{
		{"Result", string(o.Phase) + ", " + when},
		{"Message", o.Message},
		{"Triggered by", strings.TrimPrefix(trigger(o.Operation.InitiatedBy), "-")},
		{"Duration", strings.TrimPrefix(took(o.StartedAt, o.FinishedAt), "-")},
	}
	if o.SyncResult != nil {
		facts = append(facts, fact{"Revision", o.SyncResult.Revision})
	}
	if o.RetryCount > 0 {
		facts = append(facts, fact{"Retries", fmt.Sprint(o.RetryCount)})
	}
	p.facts(facts...)
	if o.SyncResult != nil {
		showFailedResources(p, o.SyncResult.Resources)
	}
}

// showFailedResources names what a sync could not do; the rest is what the
// resources above show.
func showFailedResources(p *page, results []v1alpha1.ResourceResult) {
	for _, r := range results {
		if r.Status == "SyncFailed" || r.HookPhase == v1alpha1.OperationFailed || r.HookPhase == v1alpha1.OperationError {
			p.line("failed: %s %s/%s: %s", r.Kind, orDash(r.Namespace), r.Name, firstText(r.Message, r.Status))
		}
	}
}

func showRuns(p *page, runs []*v1alpha1.GitOpsDeploymentSyncRun, now time.Time) {
	if len(runs) == 0 {
		return
	}
	p.section("Sync runs")
	t := newTable(p.out, "  ", "NAME", "STATE", "REVISION", "AGE", "MESSAGE")
	var rows [][]string
	for _, r := range runs[:min(len(runs), shownRuns)] {
		v := judge(r)
		rows = append(rows, []string{r.Name, string(v.state), short(firstText(r.Status.Revision, r.Spec.RevisionID)), age(r, now), shortened(plain(v.trouble()))})
	}
	t.print(rows...)
}
