// SPDX-License-Identifier: Apache-2.0

package health

// apiService: whether the API server reaches the group's own server.
func apiService(f *fields) HealthStatus {
	c := f.conditions()["Available"]
	switch {
	case c.isTrue():
		return healthy("%s", c.message)
	case c.isFalse():
		return progressing("%s", c.text())
	default:
		return progressing("has not been tried yet")
	}
}

// definition: a kind can be used once its names are accepted and it is established.
func definition(f *fields) HealthStatus {
	conditions := f.conditions()
	if c := conditions["Terminating"]; c.isTrue() {
		return progressing("%s", c.text())
	}
	for _, kind := range []string{"NamesAccepted", "Established"} {
		// The names come first: without them it is never established.
		c, found := conditions[kind]
		switch {
		case !found:
			return progressing("is not established yet")
		case c.isFalse() && c.reason == "Installing":
			return progressing("%s", c.text())
		case !c.isTrue():
			return degraded("%s", c.text())
		}
	}
	if c := conditions["NonStructuralSchema"]; c.isTrue() {
		return degraded("%s", c.text())
	}
	return healthy("")
}
