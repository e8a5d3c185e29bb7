// SPDX-License-Identifier: Apache-2.0

package health

// deployment: a rollout is complete when all wanted replicas are of the newest
// template and available, and no older one is left.
func deployment(f *fields) HealthStatus {
	if f.flag("spec", "paused") {
		return suspended("is paused")
	}
	if f.outdated() {
		return unobserved()
	}
	if c := f.conditions()["Progressing"]; c.reason == "ProgressDeadlineExceeded" {
		return degraded("%s", c.text())
	}
	want := f.numberOr(1, "spec", "replicas")
	updated, total := f.number("status", "updatedReplicas"), f.number("status", "replicas")
	available := f.number("status", "availableReplicas")
	switch {
	case updated < want:
		return progressing("%d of %d replicas are of the newest template", updated, want)
	case total > updated:
		return progressing("%d replicas of an older template have still to end", total-updated)
	case available < updated:
		return progressing("%d of %d new replicas are available", available, updated)
	default:
		return healthy("")
	}
}

func replicaSet(f *fields) HealthStatus {
	if f.outdated() {
		return unobserved()
	}
	if c := f.conditions()["ReplicaFailure"]; c.isTrue() {
		return degraded("%s", c.text())
	}
	want, available := f.numberOr(1, "spec", "replicas"), f.number("status", "availableReplicas")
	if available < want {
		return progressing("%d of %d replicas are available", available, want)
	}
	return healthy("")
}

// statefulSet: pods are replaced from the last to the first. With a partition
// only those from it on are, and with OnDelete none is, until somebody deletes
// them; neither is then a rollout that could be waited for.
func statefulSet(f *fields) HealthStatus {
	if f.outdated() {
		return unobserved()
	}
	want, ready := f.numberOr(1, "spec", "replicas"), f.number("status", "readyReplicas")
	if ready < want {
		return progressing("%d of %d replicas are ready", ready, want)
	}
	if f.text("spec", "updateStrategy", "type") == "OnDelete" {
		return healthy("%d replicas are ready; pods are replaced when they are deleted", ready)
	}
	updated := f.number("status", "updatedReplicas")
	if partition := f.number("spec", "updateStrategy", "rollingUpdate", "partition"); partition > 0 {
		if due := max(want-partition, 0); updated < due {
			return progressing("%d of %d replicas from the partition on are of the newest template", updated, due)
		}
		return healthy("%d replicas are of the newest template, as the partition says", updated)
	}
	if f.text("status", "updateRevision") != f.text("status", "currentRevision") {
		return progressing("%d of %d replicas are of the newest template", updated, want)
	}
	return healthy("")
}

func daemonSet(f *fields) HealthStatus {
	if f.outdated() {
		return unobserved()
	}
	if f.text("spec", "updateStrategy", "type") == "OnDelete" {
		return healthy("pods are replaced when they are deleted")
	}
	want := f.number("status", "desiredNumberScheduled")
	if updated := f.number("status", "updatedNumberScheduled"); updated < want {
		return progressing("%d of %d pods are of the newest template", updated, want)
	}
	if available := f.number("status", "numberAvailable"); available < want {
		return progressing("%d of %d pods are available", available, want)
	}
	return healthy("")
}
