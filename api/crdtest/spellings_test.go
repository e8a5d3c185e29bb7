// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The other spellings that docs/api.md lists are not silently dropped: asked to
// be strict, as kubectl asks, the server names the field that it does not know.
func TestOtherSpellingsAreNamed(t *testing.T) {
	for field, good := range map[string]template{
		"spec.source.revision":                deployment,
		"spec.destination.managedEnvironment": deployment,
		"spec.revisionId":                     syncRun,
		"spec.clusterCredentialsSecret":       environment,
		"spec.url":                            credential,
	} {
		t.Run(field, func(t *testing.T) {
			u := good(t, change{field: "something"})
			u.SetNamespace(namespace(t))
			err := server.client.Create(t.Context(), u, client.FieldValidation(metav1.FieldValidationStrict))
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "`+field+`"`) {
				t.Errorf("want a refusal of the unknown field %s, got: %v", field, err)
			}
		})
	}
}
