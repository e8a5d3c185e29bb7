// SPDX-License-Identifier: Apache-2.0

package health

// application passes on what an Application says of itself, so that waves of
// Applications wait for each other.
func application(f *fields) HealthStatus {
	message := f.text("status", "health", "message")
	switch status := Status(f.text("status", "health", "status")); status {
	case Healthy, Suspended, Progressing, Degraded, Missing, Unknown:
		return HealthStatus{status, message}
	case "":
		return progressing("has not been looked at yet")
	default:
		return unknown("its health is %q", string(status))
	}
}

// workflow: a run that ends.
func workflow(f *fields) HealthStatus {
	message := f.text("status", "message")
	switch phase := f.text("status", "phase"); phase {
	case "", "Pending", "Running":
		if f.flag("spec", "suspend") {
			return suspended("is suspended")
		}
		return progressing("%s", message)
	case "Succeeded":
		return healthy("%s", message)
	case "Failed", "Error":
		return degraded("%s", message)
	default:
		return unknown("its phase is %q", phase)
	}
}

// rollout reports its own phase.
func rollout(f *fields) HealthStatus {
	message := f.text("status", "message")
	switch phase := f.text("status", "phase"); phase {
	case "Healthy":
		return healthy("%s", message)
	case "Degraded":
		return degraded("%s", message)
	case "Paused":
		return suspended("%s", message)
	case "", "Progressing":
		return progressing("%s", message)
	default:
		return unknown("its phase is %q", phase)
	}
}
