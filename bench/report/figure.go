// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Unit is what a number counts.
type Unit string

// The units of figures. One without a name is a plain count.
const (
	UnitMilliseconds Unit = "ms"
	UnitSeconds      Unit = "s"
	UnitCPUSeconds   Unit = "CPU s"
	UnitMegabytes    Unit = "MB"
	UnitTimes        Unit = "×"
	UnitCount        Unit = ""
)

// Figure is one number of the report.
type Figure struct {
	Scenario string  `json:"scenario"`
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
	Unit     Unit    `json:"unit,omitempty"`

	// Floor is the bare client's number for the unavoidable part, or the quiet
	// one that this number is compared with. 0 is none.
	Floor float64 `json:"floor,omitempty"`
	// Ratio is Value to Floor, set by Results.Add.
	Ratio float64 `json:"ratio,omitempty"`

	Target *Target `json:"target,omitempty"`
	// Met is set by Results.Add where there is a target.
	Met *bool `json:"met,omitempty"`

	// Earlier is what an earlier system of this kind needed on such a machine.
	Earlier string `json:"earlier,omitempty"`
	// Detail says what the number is made of.
	Detail []Part `json:"detail,omitempty"`
}

// Part is one line of a figure's detail.
type Part struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  Unit    `json:"unit,omitempty"`
}

// Target is what a figure is to reach.
type Target struct {
	// Max is the largest value that reaches it, or the largest ratio to the floor.
	Max     float64 `json:"max"`
	OfFloor bool    `json:"ofFloor,omitempty"`
	// Aim is what would be better still; it does not decide. 0 is none.
	Aim float64 `json:"aim,omitempty"`
}

// AtMost is a target for the value itself.
func AtMost(limit float64) *Target { return &Target{Max: limit} }

// AtMostFloors is a target for the ratio to the floor.
func AtMostFloors(limit float64) *Target { return &Target{Max: limit, OfFloor: true} }

// AimingAt adds what would be better still.
func (t *Target) AimingAt(aim float64) *Target {
	t.Aim = aim
	return t
}

// judged fills in what follows from the other fields. Numbers are compared as
// they are printed, so that the table never says "8.0" and "missed" beside "≤ 8":
// a hundredth of a statement is a heartbeat that fell into the run.
func (f Figure) judged() Figure {
	f.Value, f.Floor = thousandths(f.Value), thousandths(f.Floor)
	f.Detail = slices.Clone(f.Detail)
	for i := range f.Detail {
		f.Detail[i].Value = thousandths(f.Detail[i].Value)
	}
	if f.Floor > 0 {
		f.Ratio = thousandths(f.Value / f.Floor)
	}
	if f.Target == nil {
		return f
	}
	value, unit := f.Value, f.Unit
	if f.Target.OfFloor {
		value, unit = f.Ratio, UnitTimes
	}
	met := rounded(value, unit) <= f.Target.Max && (!f.Target.OfFloor || f.Floor > 0)
	f.Met = &met
	return f
}

// thousandths is how precisely numbers are kept: more is noise, and makes the
// file hard to read.
func thousandths(value float64) float64 { return math.Round(value*1000) / 1000 }

// decimals is how precisely a number of a unit and size is printed.
func decimals(value float64, u Unit) int {
	switch {
	case u == UnitMegabytes, math.Abs(value) >= 1000:
		return 0
	case u == UnitTimes, u == UnitCPUSeconds, u == UnitSeconds:
		return 2
	default:
		return 1
	}
}

func rounded(value float64, u Unit) float64 {
	scale := math.Pow10(decimals(value, u))
	return math.Round(value*scale) / scale
}

// format prints a number with its unit.
func format(value float64, u Unit) string {
	text := strconv.FormatFloat(value, 'f', decimals(value, u), 64)
	switch u {
	case UnitCount:
		return text
	case UnitTimes:
		return text + string(u)
	default:
		return text + " " + string(u)
	}
}

// text prints the target as it stands in the table.
func (t *Target) text(u Unit) string {
	if t.OfFloor {
		u = UnitTimes
	}
	text := "≤ " + trimmed(t.Max, u)
	if t.Aim > 0 {
		text += fmt.Sprintf(" (aim %s)", trimmed(t.Aim, u))
	}
	return text
}

// trimmed prints a number somebody chose: as short as it was written.
func trimmed(value float64, u Unit) string {
	text := strconv.FormatFloat(value, 'f', -1, 64)
	if u == UnitTimes {
		return text + string(u)
	}
	return strings.TrimSpace(text + " " + string(u))
}
