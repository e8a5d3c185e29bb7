// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

type historyCommand struct {
	app        *app
	connection connection
	output     output
	limit      int
}

func (a *app) newHistory() *cobra.Command {
	h := &historyCommand{app: a}
	c := &cobra.Command{
		Use:   "history NAME",
		Short: "Show what was deployed when, by whom, and how it ended",
		Long: `Show what was deployed when, by whom, and how it ended, newest first.

The last few deployments are in the status of the deployment; sync runs that have
ended are shown until the service removes them.`,
		Example: `  weir history shop
  weir history shop --limit 3 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: h.connection.completeFirst(a, deployments()),
		RunE: func(c *cobra.Command, args []string) error {
			if h.limit < 0 {
				return usagef("--limit %d: give how many to show, or 0 for all", h.limit)
			}
			s, err := h.connection.open(a, c.ErrOrStderr())
			if err != nil {
				return err
			}
			return h.run(c.Context(), s, args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	h.connection.add(c)
	addOutputFlag(c, &h.output, "json", "yaml", "wide")
	c.Flags().IntVar(&h.limit, "limit", 10, "how many to show; 0 for all")
	_ = c.RegisterFlagCompletionFunc("limit", cobra.NoFileCompletions)
	return c
}

func (h *historyCommand) run(ctx context.Context, s *session, name string, out, notes io.Writer) error {
	o, err := s.get(ctx, deployments(), name)
	if err != nil {
		return err
	}
	d, ok := o.(*v1alpha1.GitOpsDeployment)
	if !ok {
		return fmt.Errorf("%s is a %T", name, o)
	}
	runs, err := s.runsOf(ctx, name)
	if err != nil {
		// The history in the status is worth showing without the runs.
		fmt.Fprintln(notes, "Without sync runs:", err)
	}
	past := pastDeployments(d.Status.History, runs)
	if h.limit > 0 && len(past) > h.limit {
		past = past[:h.limit]
	}
	if h.output == outputJSON || h.output == outputYAML {
		return printData(out, h.output, past)
	}
	if len(past) == 0 {
		fmt.Fprintf(notes, "%s has not been deployed yet.\n", name)
		return nil
	}
	printHistory(out, "", past, h.app.now(), h.output == outputWide)
	return nil
}

// runsOf lists the runs of a deployment, newest first.
func (s *session) runsOf(ctx context.Context, name string) ([]*v1alpha1.GitOpsDeploymentSyncRun, error) {
	items, err := s.all(ctx, syncRuns())
	if err != nil {
		return nil, err
	}
	var runs []*v1alpha1.GitOpsDeploymentSyncRun
	for _, o := range items {
		if r, ok := o.(*v1alpha1.GitOpsDeploymentSyncRun); ok && r.Spec.GitopsDeploymentName == name {
			runs = append(runs, r)
		}
	}
	slices.SortStableFunc(runs, func(a, b *v1alpha1.GitOpsDeploymentSyncRun) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	return runs, nil
}

// pastDeployment is one line of the history.
type pastDeployment struct {
	// ID is absent for a run that is in no history.
	ID          *int64       `json:"id,omitempty"`
	Revision    string       `json:"revision,omitempty"`
	TriggeredBy string       `json:"triggeredBy"`
	SyncRun     string       `json:"syncRun,omitempty"`
	Result      string       `json:"result,omitempty"`
	Message     string       `json:"message,omitempty"`
	StartedAt   *metav1.Time `json:"startedAt,omitempty"`
	FinishedAt  *metav1.Time `json:"finishedAt,omitempty"`
}

func (p *pastDeployment) when() *metav1.Time {
	if p.FinishedAt.IsZero() {
		return p.StartedAt
	}
	return p.FinishedAt
}

// pastDeployments joins the status' history with the runs that have ended,
// newest first. A run and an entry that began in the same second at the same
// revision are one deployment: Kubernetes keeps times to the second, and one
// deployment does not begin twice in one.
func pastDeployments(history []v1alpha1.HistoryEntry, runs []*v1alpha1.GitOpsDeploymentSyncRun) []pastDeployment {
	past := []pastDeployment{}
	for _, h := range history {
		past = append(past, pastDeployment{
			ID: &h.ID, Revision: h.Revision, TriggeredBy: trigger(h.InitiatedBy), Result: string(h.Phase), Message: h.Message,
			StartedAt: h.DeployStartedAt, FinishedAt: h.DeployedAt,
		})
	}
	for _, r := range runs {
		v := judge(r)
		if !v.final() {
			continue
		}
		if i := slices.IndexFunc(past, func(p pastDeployment) bool { return sameDeployment(p, r) }); i >= 0 {
			past[i].SyncRun = r.Name
			continue
		}
		past = append(past, pastDeployment{
			Revision: r.Status.Revision, TriggeredBy: "-", SyncRun: r.Name, Result: string(v.state), Message: v.message,
			StartedAt: r.Status.StartedAt, FinishedAt: r.Status.FinishedAt,
		})
	}
	slices.SortStableFunc(past, func(a, b pastDeployment) int {
		return cmp.Or(moment(b.when()).Compare(moment(a.when())), cmp.Compare(number(b.ID), number(a.ID)))
	})
	return past
}

func sameDeployment(p pastDeployment, r *v1alpha1.GitOpsDeploymentSyncRun) bool {
	return p.ID != nil && p.SyncRun == "" && !r.Status.StartedAt.IsZero() && !p.StartedAt.IsZero() &&
		p.StartedAt.Unix() == r.Status.StartedAt.Unix() && p.Revision == r.Status.Revision
}

func number(id *int64) int64 {
	if id == nil {
		return -1
	}
	return *id
}

func moment(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// trigger says who or what asked for a deployment.
func trigger(by v1alpha1.OperationInitiator) string {
	switch {
	case by.Automated:
		return "automated"
	case by.Username != "":
		return by.Username
	default:
		return "-"
	}
}

func printHistory(out io.Writer, indent string, past []pastDeployment, now time.Time, wide bool) {
	t := newTable(out, indent, "ID", "WHEN", "REVISION", "TRIGGERED BY", "RESULT", "DURATION", "MESSAGE")
	var rows [][]string
	for _, p := range past {
		id, by, message, revision := "-", p.TriggeredBy, plain(p.Message), short(p.Revision)
		if p.ID != nil {
			id = strconv.FormatInt(*p.ID, 10)
		}
		switch {
		case p.SyncRun == "":
		case p.TriggeredBy == "-":
			by = "sync run " + p.SyncRun
		default:
			by += " (sync run " + p.SyncRun + ")"
		}
		if wide {
			revision = orDash(p.Revision)
		} else {
			message = shortened(message)
		}
		rows = append(rows, []string{id, since(now, p.when()), revision, by, orDash(p.Result), took(p.StartedAt, p.FinishedAt), message})
	}
	t.print(rows...)
}

func since(now time.Time, t *metav1.Time) string {
	if t.IsZero() {
		return "-"
	}
	return ago(now, t) + " ago"
}
