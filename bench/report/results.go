// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Results are all figures of a run, and where it ran.
type Results struct {
	Date    time.Time `json:"date"`
	Quick   bool      `json:"quick,omitempty"`
	Seconds float64   `json:"seconds"`
	Machine Machine   `json:"machine"`
	Figures []Figure  `json:"figures"`
	Failed  []Failure `json:"failed,omitempty"`
}

// Machine is what the figures depend on.
type Machine struct {
	Cores      int     `json:"cores"`
	MemoryGB   float64 `json:"memoryGB,omitempty"`
	Processor  string  `json:"processor,omitempty"`
	System     string  `json:"system"`
	Go         string  `json:"go"`
	Kubernetes string  `json:"kubernetes,omitempty"`
	PostgreSQL string  `json:"postgresql,omitempty"`
	// Durable is false where the folder with the data is kept in memory, so that
	// waiting for the disk cost nothing.
	Durable bool `json:"durable"`
	// LoadBefore is the load average when the run began: above one or so, others
	// were at work, and latencies mean little.
	LoadBefore float64 `json:"loadBefore"`
}

// Failure is a scenario that could not be measured to its end.
type Failure struct {
	Scenario string `json:"scenario"`
	Error    string `json:"error"`
}

// Add judges figures and keeps them.
func (r *Results) Add(figures ...Figure) {
	for _, f := range figures {
		r.Figures = append(r.Figures, f.judged())
	}
}

// Fail notes a scenario that could not be measured.
func (r *Results) Fail(scenario string, err error) {
	r.Failed = append(r.Failed, Failure{Scenario: scenario, Error: err.Error()})
}

// Judgement counts the targets that were met and names the others.
func (r *Results) Judgement() (met int, missed []string) {
	for _, f := range r.Figures {
		switch {
		case f.Met == nil:
		case *f.Met:
			met++
		default:
			missed = append(missed, f.Scenario+": "+f.Name)
		}
	}
	return met, missed
}

// Save writes the results as JSON. It replaces the file in one step, so that a
// run that is interrupted leaves the former results whole.
func (r *Results) Save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
