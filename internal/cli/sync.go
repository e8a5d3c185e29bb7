// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

type syncCommand struct {
	app          *app
	connection   connection
	revision     string
	wait, noWait bool
	timeout      time.Duration
	allowMissing bool

	progress *progress
	out      io.Writer
	session  *session
}

func (a *app) newSync() *cobra.Command {
	s := &syncCommand{app: a}
	c := &cobra.Command{
		Use:   "sync NAME",
		Short: "Deploy now, and follow it to its end",
		Long: `Deploy now, and follow it to its end.

Creates a GitOpsDeploymentSyncRun for the deployment NAME and watches it. The
run goes on whatever becomes of this command.

Exit codes: 0 the run succeeded (or was created, with --no-wait), 1 it failed,
2 wrong usage, 3 it had not ended within --timeout, 130 interrupted.`,
		Example: `  weir sync shop                        the newest commit
  weir sync shop --revision v1.4.0      a tag, branch or commit
  weir sync shop --timeout 2m
  weir sync shop --no-wait              and look later`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.connection.completeFirst(a, deployments()),
		RunE: func(c *cobra.Command, args []string) error {
			s.out = c.OutOrStdout()
			s.progress = newProgress(s.out, a.terminal.Is(s.out))
			var err error
			if s.session, err = s.connection.open(a, c.ErrOrStderr()); err != nil {
				return err
			}
			return s.run(c.Context(), args[0])
		},
	}
	s.connection.add(c)
	set := c.Flags()
	set.StringVar(&s.revision, "revision", "", "commit, branch or tag to deploy; default: the newest commit of the deployment's target revision")
	set.BoolVar(&s.wait, "wait", true, "follow the run until it ends")
	set.BoolVar(&s.noWait, "no-wait", false, "only create the run")
	set.DurationVar(&s.timeout, "timeout", 10*time.Minute, "how long to follow the run; 0 for as long as it takes")
	set.BoolVar(&s.allowMissing, "allow-missing", false, "create the run although the deployment does not exist yet; it waits for it")
	c.MarkFlagsMutuallyExclusive("wait", "no-wait")
	_ = c.RegisterFlagCompletionFunc("revision", cobra.NoFileCompletions)
	return c
}

func (s *syncCommand) run(ctx context.Context, name string) error {
	if s.timeout < 0 {
		return usagef("--timeout %s: give a time such as 10m, or 0 for as long as it takes", s.timeout)
	}
	if _, err := s.session.get(ctx, deployments(), name); err != nil {
		if !errors.Is(err, errNotFound) {
			return err
		}
		if !s.allowMissing {
			return fmt.Errorf("%w (with --allow-missing the run waits for it)", err)
		}
	}
	run := &v1alpha1.GitOpsDeploymentSyncRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.session.namespace, GenerateName: generateName(name)},
		Spec:       v1alpha1.GitOpsDeploymentSyncRunSpec{GitopsDeploymentName: name, RevisionID: s.revision},
	}
	if err := s.session.api.Create(ctx, run); err != nil {
		if ctx.Err() != nil {
			return exitf(exitInterrupted, "interrupted; the sync run may have been created: %s get syncruns -n %s", s.app.program, s.session.namespace)
		}
		return s.session.explain(ctx, err, syncRuns().access("create", s.session.namespace, ""))
	}
	fmt.Fprintf(s.out, "Created sync run %s.\n", run.Name)
	if s.noWait || !s.wait {
		fmt.Fprintln(s.out, "See how it goes with:", s.look(run))
		return nil
	}
	return s.follow(ctx, run)
}

// generateName leaves the API server room for its five characters; it cuts what
// is longer, but not always where a name may end.
func generateName(name string) string {
	const most = 63 - 5 - 1
	if len(name) > most {
		name = strings.TrimRight(name[:most], "-.")
	}
	return name + "-"
}

// look is the command that shows a run.
func (s *syncCommand) look(run client.Object) string {
	return fmt.Sprintf("%s describe syncrun %s -n %s", s.app.program, run.GetName(), run.GetNamespace())
}

var errRunDeleted = errors.New("the sync run was deleted before it ended; a sync that runs is stopped with it")

// follow watches the run until it ends, the time is up, or the user leaves.
func (s *syncCommand) follow(parent context.Context, run *v1alpha1.GitOpsDeploymentSyncRun) error {
	ctx, cancel := parent, context.CancelFunc(func() {})
	if s.timeout > 0 {
		ctx, cancel = context.WithTimeout(parent, s.timeout)
	}
	defer cancel()
	var last verdict
	f := &follower{
		session: s.session, kind: syncRuns(), namespace: run.Namespace, name: run.Name,
		each: func(changes []change) (bool, error) {
			for _, c := range changes {
				r, ok := c.object.(*v1alpha1.GitOpsDeploymentSyncRun)
				if !ok || r.UID != run.UID {
					continue
				}
				last = judge(r)
				s.progress.say(runLine(r, last))
				if last.final() {
					run = r
					return true, nil
				}
				if c.deleted {
					return false, errRunDeleted
				}
			}
			return false, nil
		},
		lost: func(error) { s.progress.say("The connection broke; trying again.") },
	}
	err := f.run(ctx)
	s.progress.end()
	switch {
	case parent.Err() != nil:
		return exitf(exitInterrupted, "interrupted; the sync run goes on: %s\nto stop it: kubectl delete gitopsdeploymentsyncrun %s -n %s", s.look(run), run.Name, run.Namespace)
	case errors.Is(err, context.DeadlineExceeded):
		return exitf(exitTimedOut, "%s; the sync run goes on: %s", lateness(s.timeout, last), s.look(run))
	case err != nil:
		return err
	case last.state == runFailed:
		return exitf(exitFailed, "the sync failed: %s", plain(firstText(last.message, "the service gave no reason")))
	}
	return nil
}

func lateness(timeout time.Duration, last verdict) string {
	text := fmt.Sprintf("not ended within %s", timeout)
	if last.state == runWaiting {
		text = fmt.Sprintf("not begun within %s", timeout)
	}
	if last.message != "" {
		text += ": " + plain(last.message)
	}
	return text
}

// runLine is a run in one line.
func runLine(r *v1alpha1.GitOpsDeploymentSyncRun, v verdict) string {
	parts := []string{string(v.state)}
	if r.Status.Revision != "" {
		parts = append(parts, "revision "+short(r.Status.Revision))
	}
	if r.Status.SyncStatus != "" {
		parts = append(parts, string(r.Status.SyncStatus))
	}
	if r.Status.Health != "" {
		parts = append(parts, string(r.Status.Health))
	}
	if v.final() && !r.Status.StartedAt.IsZero() && !r.Status.FinishedAt.IsZero() {
		parts = append(parts, "in "+took(r.Status.StartedAt, r.Status.FinishedAt))
	}
	line := strings.Join(parts, ", ")
	if v.message != "" && v.state != runSucceeded && v.state != runFailed {
		line += ": " + v.message
	}
	return plain(line)
}
