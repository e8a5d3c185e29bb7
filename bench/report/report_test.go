// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     Figure
		ratio float64
		met   string
	}{
		{"no target", Figure{Value: 5}, 0, ""},
		{"value at the limit", Figure{Value: 60, Unit: UnitMilliseconds, Target: AtMost(60)}, 0, "yes"},
		{"value above the limit", Figure{Value: 60.1, Unit: UnitMilliseconds, Target: AtMost(60)}, 0, "MISSED"},
		{"a heartbeat in two hundred creates", Figure{Value: 8.005, Target: AtMost(8)}, 0, "yes"},
		{"one statement too many in ten", Figure{Value: 8.1, Target: AtMost(8)}, 0, "MISSED"},
		{"ratio within", Figure{Value: 14, Floor: 7, Unit: UnitMilliseconds, Target: AtMostFloors(2).AimingAt(1.5)}, 2, "yes"},
		{"ratio above", Figure{Value: 15, Floor: 6, Unit: UnitMilliseconds, Target: AtMostFloors(2)}, 2.5, "MISSED"},
		{"a ratio without a floor is not reached", Figure{Value: 0, Target: AtMostFloors(2)}, 0, "MISSED"},
		{"the floor does not matter to a limit on the value", Figure{Value: 90, Floor: 10, Target: AtMost(100)}, 9, "yes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := c.f.judged()
			if f.Ratio != c.ratio {
				t.Errorf("ratio %v, want %v", f.Ratio, c.ratio)
			}
			if met := row(f)[5]; met != c.met {
				t.Errorf("met %q, want %q", met, c.met)
			}
		})
	}
}

func TestTable(t *testing.T) {
	var r Results
	r.Add(
		Figure{Scenario: "latency", Name: "floor, p50", Value: 7.31, Unit: UnitMilliseconds},
		Figure{
			Scenario: "latency", Name: "create, p50", Value: 10.96, Unit: UnitMilliseconds, Floor: 7.31,
			Target: AtMostFloors(2).AimingAt(1.5), Earlier: "32–36 ms",
			Detail: []Part{{Name: "commit", Value: 2.25, Unit: UnitMilliseconds}},
		},
		Figure{Scenario: "idle", Name: "CPU", Value: 0.61, Unit: UnitCPUSeconds, Target: AtMost(0.5)},
		Figure{Scenario: "idle", Name: "SQL statements", Value: 11600, Earlier: "11,600"},
	)
	var got strings.Builder
	if err := WriteTable(&got, r.Figures); err != nil {
		t.Fatal(err)
	}
	if err := WriteDetails(&got, r.Figures); err != nil {
		t.Fatal(err)
	}
	want := `
figure                 value   floor  ratio  target           met     earlier

latency
  floor, p50          7.3 ms
  create, p50        11.0 ms  7.3 ms  1.50×  ≤ 2× (aim 1.5×)  yes     32–36 ms

idle
  CPU             0.61 CPU s                 ≤ 0.5 CPU s      MISSED
  SQL statements       11600                                          11,600

latency: create, p50
        2.2 ms  commit
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	met, missed := r.Judgement()
	if diff := cmp.Diff([]string{"idle: CPU"}, missed); met != 1 || diff != "" {
		t.Errorf("%d met; missed (-want +got):\n%s", met, diff)
	}
}

func TestSaveAndReadBack(t *testing.T) {
	r := Results{Machine: Machine{Cores: 2, Go: "go1.26"}}
	r.Add(Figure{Scenario: "a", Name: "b", Value: 4, Floor: 2, Target: AtMostFloors(3)})
	r.Fail("c", errors.New("did not come"))
	path := filepath.Join(t.TempDir(), "results.json")
	for range 2 { // the second replaces the first
		if err := r.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var back Results
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if back.Figures[0].Met == nil || !*back.Figures[0].Met || back.Figures[0].Ratio != 2 {
		t.Errorf("the judgement is not in the file: %s", text)
	}
}
