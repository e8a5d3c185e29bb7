// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/store"
)

// damaged is a row that the backend would never have written. Whoever has written
// it, an engine is not given it: it would run programs with what it holds.
type damaged struct {
	column string
	cause  error
}

func (d *damaged) Error() string {
	return fmt.Sprintf("%s was changed by hand into something that is not allowed: %v", d.column, d.cause)
}

func (d *damaged) Unwrap() error { return d.cause }

// checkRow holds an application's row to what the backend takes in, but for what
// an operator may allow.
func checkRow(row store.Application) error {
	s := row.Spec
	refuse := func(err error) error { return &damaged{"application.spec", err} }
	if _, err := gitremote.Parse(s.RepoURL, gitremote.PlainHTTP); err != nil {
		return refuse(err)
	}
	if strings.ContainsAny(s.RepoURL, domain.Globs) {
		return refuse(&domain.Refusal{Field: "repoURL", Problem: "contains one of " + domain.Globs})
	}
	if err := domain.CheckPath("path", s.Path); err != nil {
		return refuse(err)
	}
	if err := domain.CheckRevision("targetRevision", s.TargetRevision); err != nil {
		return refuse(err)
	}
	if problems := validation.IsDNS1123Label(s.Namespace); len(problems) > 0 {
		return refuse(&domain.Refusal{Field: "namespace", Problem: problems[0]})
	}
	return nil
}

// checkNamespaces holds the namespaces of an environment to what can only be names:
// engines read them as a list.
func checkNamespaces(names []string) error {
	for _, name := range names {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return &damaged{"cluster_credentials.namespaces", &domain.Refusal{Field: name, Problem: problems[0]}}
		}
	}
	return nil
}

// checkSync holds a sync's row to what the backend takes in.
func checkSync(row *store.SyncOperation) error {
	if err := domain.CheckRevision("revision", row.Revision); err != nil {
		return &damaged{"sync_operation.revision", err}
	}
	return nil
}
