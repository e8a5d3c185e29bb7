// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SecretKey is the key of the Secret's data that has the ring.
const SecretKey = "ring.json"

// Secret keeps the ring in a Kubernetes Secret: for several processes. It lies
// there in clear text, as safe as the cluster's Secrets are: let nobody but Weir
// and its operators read that namespace, and have the API server encrypt Secrets
// at rest.
type Secret struct {
	api  client.Client
	name client.ObjectKey
}

var _ Writable = (*Secret)(nil)

// NewSecret names a Secret. The client must read from the API server itself: a
// cached one would need to watch Secrets, and could answer with the ring of a
// moment ago, which is the wrong answer to having met an unknown key.
func NewSecret(api client.Client, name client.ObjectKey) *Secret {
	return &Secret{api: api, name: name}
}

// Where names the Secret.
func (s *Secret) Where() string { return "Secret " + s.name.String() }

// Load reads the Secret.
func (s *Secret) Load(ctx context.Context) (*Ring, error) {
	object, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return s.parse(object)
}

func (s *Secret) get(ctx context.Context) (*corev1.Secret, error) {
	object := &corev1.Secret{}
	err := s.api.Get(ctx, s.name, object)
	if apierrors.IsNotFound(err) {
		return nil, s.missing()
	}
	return object, s.explain(err)
}

func (s *Secret) missing() error {
	return &NoRingError{Where: s.Where(), Create: "weir keys create --key-ring-secret " + s.name.String()}
}

func (s *Secret) explain(err error) error {
	if err == nil {
		return nil
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("key ring in %s: %w; let the role get it, and those who manage keys create and update it", s.Where(), err)
	}
	return fmt.Errorf("key ring in %s: %w", s.Where(), err)
}

func (s *Secret) parse(object *corev1.Secret) (*Ring, error) {
	text := object.Data[SecretKey]
	if len(text) == 0 {
		return nil, s.missing()
	}
	r, err := ParseRing(text)
	if err != nil {
		return nil, fmt.Errorf("%s, key %s: %w; restore it from a backup", s.Where(), SecretKey, err)
	}
	return r, nil
}

// Create makes the Secret, or adds the ring to one that is there without it.
func (s *Secret) Create(ctx context.Context, r *Ring) error {
	text, err := r.Encode()
	if err != nil {
		return err
	}
	object := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name.Namespace, Name: s.name.Name},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{SecretKey: text},
	}
	err = s.api.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return s.addTo(ctx, text)
	}
	return s.explain(err)
}

func (s *Secret) addTo(ctx context.Context, text []byte) error {
	object, err := s.get(ctx)
	if err != nil {
		return err
	}
	if len(object.Data[SecretKey]) > 0 {
		return fmt.Errorf("key ring in %s: %w", s.Where(), ErrRingExists)
	}
	return s.put(ctx, object, text)
}

// put writes the Secret that was read, and conflicts where it has changed since:
// its resourceVersion goes with it.
func (s *Secret) put(ctx context.Context, object *corev1.Secret, text []byte) error {
	if object.Data == nil {
		object.Data = make(map[string][]byte, 1)
	}
	object.Data[SecretKey] = text
	return s.explain(s.api.Update(ctx, object))
}

// Update decides again on the newer ring where somebody else was faster.
func (s *Secret) Update(ctx context.Context, change func(*Ring) (*Ring, error)) (*Ring, error) {
	var next *Ring
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := s.get(ctx)
		if err != nil {
			return err
		}
		was, err := s.parse(object)
		if err != nil {
			return err
		}
		if next, err = change(was); err != nil || next == was {
			return err
		}
		text, err := next.Encode()
		if err != nil {
			return err
		}
		return s.put(ctx, object, text)
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}
