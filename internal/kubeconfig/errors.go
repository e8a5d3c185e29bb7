// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"strings"
	"unicode"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

// Error says why a kubeconfig is of no use, with the reason for the environment's
// condition. errors.As finds the *domain.Refusal in it.
type Error struct {
	// Reason is one of UnsupportedAPIURL, UnableToParseKubeconfigData,
	// UnableToLocateContext and UnableToRetrieveRestConfig.
	Reason v1alpha1.ConditionReason
	// Refusal names the field, the problem and the remedy.
	Refusal domain.Refusal
}

// Error gives the sentence that the tenant reads.
func (e *Error) Error() string { return e.Refusal.Error() }

// Unwrap gives the refusal: trying again is of no use until the tenant has
// changed something.
func (e *Error) Unwrap() error { return &e.Refusal }

func refuse(reason v1alpha1.ConditionReason, field, problem, remedy string) error {
	return &Error{Reason: reason, Refusal: domain.Refusal{Field: field, Problem: problem, Remedy: remedy}}
}

// unparsable is for what is not a kubeconfig.
func unparsable(field, problem, remedy string) error {
	return refuse(v1alpha1.ReasonUnableToParseKubeconfigData, field, problem, remedy)
}

// unusable is for a kubeconfig that is one, and from which no connection can be
// made.
func unusable(field, problem, remedy string) error {
	return refuse(v1alpha1.ReasonUnableToRetrieveRestConfig, field, problem, remedy)
}

// at is the path of a field of one entry, such as users[admin].user.exec.
func at(list, name, entry, field string) string {
	return "kubeconfig " + list + "[" + label(name) + "]." + entry + "." + field
}

// label makes a name fit for a message.
func label(name string) string {
	const most = 80
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return name
}
