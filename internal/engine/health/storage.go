// SPDX-License-Identifier: Apache-2.0

package health

func claim(f *fields) HealthStatus {
	switch phase := f.text("status", "phase"); phase {
	case "Bound":
		return healthy("")
	case "", "Pending":
		return progressing("is not bound to a volume yet")
	case "Lost":
		return degraded("its volume is lost")
	default:
		return unknown("its phase is %q", phase)
	}
}
