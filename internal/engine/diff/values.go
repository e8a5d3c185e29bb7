// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// isEmpty says whether a value says no more than its absence would.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range v {
			if inner != nil {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// presenceMatters names fields that say something by being there, even empty:
// the kind of a volume, and selectors, where an empty one selects everything and
// an absent one nothing.
func presenceMatters(field string) bool {
	switch field {
	case "emptyDir", "selector", "podSelector", "namespaceSelector", "labelSelector", "objectSelector":
		return true
	default:
		return false
	}
}

// sameScalar compares two values of which desired is no map and no list.
func (w *walker) sameScalar(p *path, desired, live any) bool {
	if desired == live {
		return true
	}
	if a, ok := number(desired); ok {
		if b, ok := number(live); ok {
			return a == b
		}
	}
	if w.isQuantity(p) {
		return sameQuantity(desired, live)
	}
	if w.secret && p.root() == "data" {
		return sameBase64(desired, live)
	}
	return false
}

// number is exact for all whole numbers that JSON is used for, up to 2⁵³, and
// refuses others rather than to round them.
func number(value any) (float64, bool) {
	const exact = 1 << 53
	var whole int64
	switch v := value.(type) {
	case int64:
		whole = v
	case int:
		whole = int64(v)
	case int32:
		whole = int64(v)
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	default:
		return 0, false
	}
	return float64(whole), whole <= exact && whole >= -exact
}

// isQuantity says whether Kubernetes reads the field as a quantity. For kinds
// that are not its own only limits and requests are taken for such.
func (w *walker) isQuantity(p *path) bool {
	outer := p.outer()
	if outer == "limits" || outer == "requests" {
		return true
	}
	if !w.native {
		return false
	}
	switch outer {
	case "hard", "capacity", "allocatable", "default", "defaultRequest", "max", "min", "maxLimitRequestRatio", "podFixed":
		return true
	}
	switch p.name() {
	case "sizeLimit", "divisor", "averageValue":
		return true
	case "value":
		return outer == "target"
	default:
		return false
	}
}

func sameQuantity(desired, live any) bool {
	a, okA := quantity(desired)
	b, okB := quantity(live)
	return okA && okB && a.Cmp(b) == 0
}

func quantity(value any) (resource.Quantity, bool) {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	default:
		n, ok := number(value)
		if !ok {
			return resource.Quantity{}, false
		}
		text = strconv.FormatFloat(n, 'f', -1, 64)
	}
	q, err := resource.ParseQuantity(strings.TrimSpace(text))
	return q, err == nil
}

// sameBase64 compares what is encoded: line breaks in the encoding are not kept
// by the server.
func sameBase64(desired, live any) bool {
	a, okA := desired.(string)
	b, okB := live.(string)
	if !okA || !okB {
		return false
	}
	decodedA, errA := base64.StdEncoding.DecodeString(a)
	decodedB, errB := base64.StdEncoding.DecodeString(b)
	return errA == nil && errB == nil && bytes.Equal(decodedA, decodedB)
}

// foldStringData does to a Secret what the server does: stringData goes into
// data, and wins over what is there.
func foldStringData(object map[string]any) map[string]any {
	plain, ok := object["stringData"].(map[string]any)
	if !ok {
		return object
	}
	out := maps.Clone(object)
	delete(out, "stringData")
	data, ok := out["data"].(map[string]any)
	if !ok {
		data = nil
	}
	folded := make(map[string]any, len(data)+len(plain))
	maps.Copy(folded, data)
	for name, value := range plain {
		if text, ok := value.(string); ok {
			folded[name] = base64.StdEncoding.EncodeToString([]byte(text))
		} else if value != nil {
			folded[name] = value
		}
	}
	out["data"] = folded
	return out
}

func mask(value any) any {
	if value == nil {
		return nil
	}
	return Masked
}
