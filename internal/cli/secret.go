// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// A Secret that this program made carries this label, and is removed with the
// resource that uses it. One that a person made is left to that person.
const (
	madeByLabel = "app.kubernetes.io/managed-by"
	madeBy      = "weir-cli"
)

// credentialSecret is a Secret to be written. The keys that the type knows and
// that are not given are taken out of one that is there.
type credentialSecret struct {
	name       string
	secretType string
	data       map[string]hidden
	other      []string
}

func secretAccess(verb, namespace, name string) access {
	return access{verb: verb, resource: "secrets", namespace: namespace, name: name}
}

// put creates the Secret or writes over it. It is never read: that takes one
// permission less, and the old credential stays where it is. A Secret of
// another type is not in danger, because the API server lets no type change.
func (c *credentialSecret) put(ctx context.Context, s *session) (created bool, err error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: c.name, Labels: map[string]string{madeByLabel: madeBy}},
		Type:       corev1.SecretType(c.secretType),
		Data:       map[string][]byte{},
	}
	values := map[string]any{}
	for _, key := range c.other {
		values[key] = nil
	}
	for key, value := range c.data {
		secret.Data[key] = value
		values[key] = []byte(value)
	}
	err = s.api.Create(ctx, secret)
	if !apierrors.IsAlreadyExists(err) {
		return err == nil, s.explain(ctx, err, secretAccess("create", s.namespace, ""))
	}
	patch, err := json.Marshal(map[string]any{"type": c.secretType, "data": values})
	if err != nil {
		return false, err
	}
	have := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: c.name}}
	err = s.api.Patch(ctx, have, client.RawPatch(types.MergePatchType, patch))
	if faultIn(err, "type") {
		return false, fmt.Errorf("there is a Secret %q of another type already: choose another name with --secret", c.name)
	}
	return false, s.explain(ctx, err, secretAccess("patch", s.namespace, c.name))
}

// faultIn says whether the API server refuses one field.
func faultIn(err error, field string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == field {
			return true
		}
	}
	return false
}

// remove deletes the Secret if this program made it. Only its metadata is read.
// What it could not do is told, not failed: the resource that used it is gone.
func removeSecret(ctx context.Context, s *session, name string, notes io.Writer) {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := s.api.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, meta)
	switch {
	case apierrors.IsNotFound(err):
		return
	case err == nil && meta.Labels[madeByLabel] != madeBy:
		fmt.Fprintf(notes, "Secret %s is left: it was not made by this program.\n", name)
		return
	case err == nil:
		err = s.api.Delete(ctx, meta, client.Preconditions{UID: &meta.UID})
	}
	if err != nil {
		fmt.Fprintf(notes, "Secret %s is left, remove it with: kubectl delete secret %s -n %s (%v)\n", name, name, s.namespace,
			s.explain(ctx, err, secretAccess("delete", s.namespace, name)))
		return
	}
	fmt.Fprintf(notes, "Removed Secret %s.\n", name)
}

// masked is the Secret as --dry-run shows it.
func (c *credentialSecret) masked(namespace string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": c.secretType,
		"metadata":   map[string]any{"name": c.name, "namespace": namespace, "labels": map[string]string{madeByLabel: madeBy}},
		"stringData": c.data,
	}
}

// printDryRun shows what would be written, as YAML.
func printDryRun(out io.Writer, documents ...any) error {
	for _, d := range documents {
		text, err := yaml.Marshal(d)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "---\n%s", text)
	}
	return nil
}
