// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"strings"
)

// conditionsAnnotation holds, in autoscaling/v1, what later versions have in
// their status.
const conditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions"

// autoscaler: it is unwell when it cannot reach what it scales, or cannot get
// what it scales by. That it is at a limit, or turned off at zero replicas, is
// not its fault.
func autoscaler(f *fields) HealthStatus {
	conditions := f.conditions()
	if len(conditions) == 0 {
		conditions = annotatedConditions(f)
	}
	if len(conditions) == 0 {
		return progressing("has not judged anything yet")
	}
	for _, kind := range []string{"AbleToScale", "ScalingActive"} {
		if c := conditions[kind]; c.isFalse() && (strings.HasPrefix(c.reason, "Failed") || strings.HasPrefix(c.reason, "Invalid")) {
			return degraded("%s", c.text())
		}
	}
	return healthy("")
}

func annotatedConditions(f *fields) map[string]condition {
	text := f.text("metadata", "annotations", conditionsAnnotation)
	if text == "" {
		return nil
	}
	var list []any
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		f.fault([]string{"metadata", "annotations", conditionsAnnotation}, "a list in JSON")
		return nil
	}
	inner := &fields{object: map[string]any{"status": map[string]any{"conditions": list}}}
	all := inner.conditions()
	if inner.err != nil {
		f.fault([]string{"metadata", "annotations", conditionsAnnotation}, "a list of conditions")
	}
	return all
}
