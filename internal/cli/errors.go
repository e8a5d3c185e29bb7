// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Exit codes of the tenant's commands.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitTimedOut    = 3
	exitInterrupted = 130
)

// exitError is an error with the code that the process ends with.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// ExitCode is the code that the process ends with after an error: 1, unless the
// command says otherwise.
func ExitCode(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	default:
		return exitFailed
	}
}

func exitf(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

func usagef(format string, args ...any) error { return exitf(exitUsage, format, args...) }

// access is what was asked of the API server. An empty namespace is all of them.
type access struct {
	verb, group, resource, namespace, name string
}

func (a access) String() string {
	where := "in all namespaces"
	if a.namespace != "" {
		where = fmt.Sprintf("in namespace %q", a.namespace)
	}
	return fmt.Sprintf("%s %s %s", a.verb, schema.GroupResource{Group: a.group, Resource: a.resource}, where)
}

// explain turns an answer of the API server into what it means for the tenant
// and what to do about it.
func (s *session) explain(ctx context.Context, err error, a access) error {
	var unreachable *url.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return exitf(exitInterrupted, "interrupted: %w", ctx.Err())
	case ctx.Err() != nil:
		return err
	case apierrors.IsForbidden(err):
		return s.explainForbidden(ctx, err, a)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster at %s does not know you: sign in again, or choose another context with --context or file with --kubeconfig", s.host)
	case definitionsMissing(err, a):
		return fmt.Errorf("the cluster at %s has no %s.%s: Weir is not installed there; ask its operator (who installs the definitions with: weir crds install), or choose another cluster with --context", s.host, a.resource, a.group)
	case missingNamespace(err):
		return fmt.Errorf("there is no namespace %q: choose yours with -n", a.namespace)
	case apierrors.IsInvalid(err):
		return explainInvalid(err)
	case errors.As(err, &unreachable):
		return fmt.Errorf("cannot reach the cluster at %s: %w; choose another with --context or --kubeconfig", s.host, unreachable.Err)
	default:
		return fmt.Errorf("%s: %w", a, err)
	}
}

// explainForbidden tells a missing permission from other things that the API
// server forbids, such as what exceeds a quota, by asking it.
func (s *session) explainForbidden(ctx context.Context, err error, a access) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: a.verb, Group: a.group, Resource: a.resource, Namespace: a.namespace, Name: a.name},
	}}
	if asked := s.api.Create(ctx, review); asked == nil && review.Status.Allowed {
		return fmt.Errorf("the cluster does not allow it: %s", plain(err.Error()))
	}
	remedy := "ask whoever administers the cluster for it"
	if a.namespace == "" {
		remedy = "leave -A out to see your own namespace, or " + remedy
	}
	return fmt.Errorf("you lack the permission to %s: %s", a, remedy)
}

// definitionsMissing says whether the API server does not know the resource at
// all. Lists and creations find nothing for no other reason, except for a
// namespace that is not there; for the rest, the server marks an answer that
// comes from no resource.
func definitionsMissing(err error, a access) bool {
	if !apierrors.IsNotFound(err) || missingNamespace(err) || a.group == "" {
		return false
	}
	if a.verb == "list" || a.verb == "watch" || a.verb == "create" {
		return true
	}
	return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func missingNamespace(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces"
}

// explainInvalid keeps what the rules of the definitions say; they name the
// field, the problem and the remedy.
func explainInvalid(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return fmt.Errorf("refused: %w", err)
	}
	var lines []string
	for _, cause := range status.Status().Details.Causes {
		lines = append(lines, plain(cause.Field+": "+cause.Message))
	}
	return fmt.Errorf("refused: %s", strings.Join(lines, "; "))
}
