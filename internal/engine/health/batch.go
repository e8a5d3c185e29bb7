// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// job: only its conditions are final. Counts of failed pods say nothing, because
// a Job may retry.
func job(f *fields) HealthStatus {
	conditions := f.conditions()
	if c := conditions["Failed"]; c.isTrue() {
		return degraded("%s", c.text())
	}
	if c := conditions["Complete"]; c.isTrue() {
		return healthy("%s", c.message)
	}
	if c := conditions["Suspended"]; c.isTrue() || f.flag("spec", "suspend") {
		return suspended("is suspended")
	}
	if failed := f.number("status", "failed"); failed > 0 {
		return progressing("%d pods failed; the Job may still retry, up to %d times", failed, f.numberOr(6, "spec", "backoffLimit"))
	}
	return progressing("has not ended yet")
}

// cronJob: unwell is one whose last run is over and was no success. One that
// runs, or has never run, is as it should be.
func cronJob(f *fields) HealthStatus {
	if f.flag("spec", "suspend") {
		return suspended("is suspended")
	}
	last := f.text("status", "lastScheduleTime")
	if last == "" {
		return healthy("has not run yet")
	}
	if active := f.length("status", "active"); active > 0 {
		return healthy("%d jobs are running", active)
	}
	success := f.text("status", "lastSuccessfulTime")
	if success == "" {
		return degraded("its last run did not succeed")
	}
	begun, ended := f.time(last, "status", "lastScheduleTime"), f.time(success, "status", "lastSuccessfulTime")
	if ended.Before(begun) {
		return degraded("its last run did not succeed")
	}
	return healthy("its last run succeeded")
}

func (f *fields) time(text string, path ...string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.fault(path, "a time")
	}
	return at
}
