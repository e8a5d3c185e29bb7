// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
)

// ErrNotComparable is two objects that are not the same one, or the same in two
// versions of its API, whose fields mean different things.
var ErrNotComparable = errors.New("not the same object")

// Options say what does not count as a difference.
type Options struct {
	// Manager is the name of our field manager. Without one, fields that Git no
	// longer sets are not noticed.
	Manager string
	// Ignore is an application's spec.ignoreDifferences.
	Ignore []argo.ResourceIgnoreDifferences
}

// Comparer compares objects. It has no state and can be used by many at once.
type Comparer struct {
	manager     string
	rules       []rule
	fingerprint [sha256.Size]byte
}

// New checks the options.
func New(opts Options) (*Comparer, error) {
	rules, err := readRules(opts.Ignore)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(opts)
	if err != nil {
		return nil, fmt.Errorf("options of a comparison: %w", err)
	}
	return &Comparer{manager: opts.Manager, rules: rules, fingerprint: sha256.Sum256(text)}, nil
}

// Hash identifies a desired object together with the options, for a Cache.
func (c *Comparer) Hash(desired *unstructured.Unstructured) (Hash, error) {
	text, err := json.Marshal(desired.Object)
	if err != nil {
		return Hash{}, fmt.Errorf("hash of a desired object: %w", err)
	}
	sum := sha256.New()
	sum.Write(c.fingerprint[:])
	sum.Write(text)
	return Hash(sum.Sum(nil)), nil
}

// Compare says whether live is as desired. It changes neither.
//
// Desired is what would be applied, with everything that the engine itself adds,
// such as its tracking annotation: what our manager owns and desired lacks is a
// difference. Live has to be read in desired's version of the API.
func (c *Comparer) Compare(desired, live *unstructured.Unstructured) (Result, error) {
	if err := sameObject(desired, live); err != nil {
		return Result{}, err
	}
	gk := desired.GroupVersionKind().GroupKind()
	d, l := withoutServerFields(desired.Object), withoutServerFields(live.Object)
	w := &walker{group: gk.Group, kind: gk.Kind, native: isNative(gk.Group)}
	if gk.Group == "" && gk.Kind == "Secret" {
		w.secret = true
		d = foldStringData(d)
	}
	if d["aggregationRule"] != nil && gk.Kind == "ClusterRole" {
		// A controller fills them in.
		delete(d, "rules")
		delete(l, "rules")
	}
	managed := managedFields(live)
	d, l = c.hideIgnored(w, desired, d, l, managed)
	w.walkMap(nil, d, l, managed.applied(c.manager, live.GetAPIVersion()))
	return Result{Equal: len(w.found) == 0, Differences: w.found}, nil
}

func sameObject(desired, live *unstructured.Unstructured) error {
	a, b := desired.GroupVersionKind(), live.GroupVersionKind()
	switch {
	case a != b:
		return fmt.Errorf("%w: desired is %s, live is %s", ErrNotComparable, a, b)
	case desired.GetName() != live.GetName():
		return fmt.Errorf("%w: desired is called %q, live %q", ErrNotComparable, desired.GetName(), live.GetName())
	case desired.GetNamespace() != "" && desired.GetNamespace() != live.GetNamespace():
		return fmt.Errorf("%w: desired is in namespace %q, live in %q", ErrNotComparable, desired.GetNamespace(), live.GetNamespace())
	default:
		return nil
	}
}

// lastApplied is kubectl's copy of the object, Secret values included.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// withoutServerFields copies the outermost maps of an object, without what is
// never compared.
func withoutServerFields(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for name, value := range object {
		switch name {
		case "apiVersion", "kind", "status":
		case "metadata":
			metadata, ok := value.(map[string]any)
			if !ok {
				continue
			}
			out[name] = comparedMetadata(metadata)
		default:
			out[name] = value
		}
	}
	return out
}

func comparedMetadata(metadata map[string]any) map[string]any {
	out := map[string]any{}
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		if value, found := metadata[name]; found {
			out[name] = value
		}
	}
	annotations, ok := out["annotations"].(map[string]any)
	if _, found := annotations[lastApplied]; ok && found {
		kept := make(map[string]any, len(annotations))
		for name, value := range annotations {
			if name != lastApplied {
				kept[name] = value
			}
		}
		out["annotations"] = kept
	}
	return out
}
