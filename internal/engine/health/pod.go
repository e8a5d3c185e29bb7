// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
)

// pod: what the restart policy is tells what a pod is for. With Always it should
// run and stay ready; otherwise it should come to an end, and is on its way until
// then.
func pod(f *fields) HealthStatus {
	forever := true
	switch f.text("spec", "restartPolicy") {
	case "OnFailure", "Never":
		forever = false
	}
	if forever {
		// A container that cannot start keeps the phase at Pending or Running.
		if trouble := waitingTrouble(f); trouble != "" {
			return degraded("%s", trouble)
		}
	}
	switch phase := f.text("status", "phase"); phase {
	case "", "Pending":
		return progressing("%s", pendingReason(f))
	case "Succeeded":
		return healthy("%s", f.text("status", "message"))
	case "Failed":
		return degraded("%s", failure(f))
	case "Running":
		if !forever {
			return progressing("runs, and should end")
		}
		return running(f)
	default:
		return unknown("its phase is %q", phase)
	}
}

// pendingReason says why a pod does not run yet, if its status does.
func pendingReason(f *fields) string {
	if text := f.text("status", "message"); text != "" {
		return text
	}
	if c := f.conditions()["PodScheduled"]; c.isFalse() {
		return c.text()
	}
	return "is about to start"
}

// running is for pods that should go on for ever.
func running(f *fields) HealthStatus {
	if f.conditions()["Ready"].isTrue() {
		return healthy("%s", f.text("status", "message"))
	}
	// Not ready, and has ended before: restarting does not seem to help.
	ended := ""
	f.each(func(c *fields) {
		if c.has("lastState", "terminated") && ended == "" {
			ended = fmt.Sprintf("container %s is not ready and ended before, with code %d",
				c.text("name"), c.number("lastState", "terminated", "exitCode"))
		}
	}, "status", "containerStatuses")
	if ended != "" {
		return degraded("%s", ended)
	}
	return progressing("runs and is not ready yet")
}

// waitingTrouble lists containers that wait for a reason that time alone rarely
// mends: a failed start, image or configuration, or being held back after one.
func waitingTrouble(f *fields) string {
	var troubles []string
	look := func(c *fields) {
		reason := c.text("state", "waiting", "reason")
		if !isTrouble(reason) {
			return
		}
		trouble := "container " + c.text("name") + ": " + reason
		if message := c.text("state", "waiting", "message"); message != "" {
			trouble += ": " + message
		}
		troubles = append(troubles, trouble)
	}
	f.each(look, "status", "initContainerStatuses")
	f.each(look, "status", "containerStatuses")
	return strings.Join(troubles, "; ")
}

func isTrouble(reason string) bool {
	return strings.HasPrefix(reason, "Err") || strings.HasSuffix(reason, "Error") ||
		strings.HasSuffix(reason, "BackOff") || reason == "InvalidImageName"
}

// failure says why a pod failed: its own message, or the containers' ends.
func failure(f *fields) string {
	if text := f.text("status", "message"); text != "" {
		return text
	}
	var ends []string
	look := func(c *fields) {
		if !c.has("state", "terminated") {
			return
		}
		code, reason := c.number("state", "terminated", "exitCode"), c.text("state", "terminated", "reason")
		switch {
		case c.text("state", "terminated", "message") != "":
			ends = append(ends, c.text("state", "terminated", "message"))
		case reason == "OOMKilled":
			ends = append(ends, fmt.Sprintf("container %s ran out of memory", c.text("name")))
		case code != 0:
			ends = append(ends, fmt.Sprintf("container %s ended with code %d", c.text("name"), code))
		}
	}
	f.each(look, "status", "initContainerStatuses")
	f.each(look, "status", "containerStatuses")
	if len(ends) > 0 {
		return strings.Join(ends, "; ")
	}
	if reason := f.text("status", "reason"); reason != "" {
		return reason
	}
	return "failed"
}
