// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Result is what a comparison found.
type Result struct {
	Equal bool `json:"equal"`
	// Differences in the order of their paths as the objects are walked: fields by
	// name, list elements as desired has them.
	Differences []Difference `json:"differences,omitempty"`
}

// Difference is one field that is not as it should be.
type Difference struct {
	// Path such as spec.containers[name="app"].image.
	Path string `json:"path"`
	// Desired and Live are the values, nil where there is none. They are parts of
	// the objects compared, not copies.
	Desired any `json:"desired,omitempty"`
	Live    any `json:"live,omitempty"`
}

// Masked stands for a value that is not shown.
const Masked = "(not shown)"

// String is for people.
func (d Difference) String() string {
	return fmt.Sprintf("%s: desired %s, live %s", d.Path, show(d.Desired), show(d.Live))
}

func show(value any) string {
	if value == nil {
		return "absent"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "unprintable"
	}
	return string(text)
}

// String is for people, a line for each difference.
func (r Result) String() string {
	if r.Equal {
		return "equal"
	}
	lines := make([]string, len(r.Differences))
	for i, d := range r.Differences {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}
