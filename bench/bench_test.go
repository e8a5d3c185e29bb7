// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

func TestFlags(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	programs := []string{"--weir", program, "--localkube", program}
	for _, c := range []struct {
		name    string
		args    []string
		results string
		wrong   string
	}{
		{"a whole run writes the file", programs, resultsFile, ""},
		{"a quick one does not", append([]string{"--quick"}, programs...), "", ""},
		{"nor does a part", append([]string{"--only", "latency,idle"}, programs...), "", ""},
		{"unless told to", append([]string{"--quick", "--results", "x.json"}, programs...), "x.json", ""},
		{"an unknown scenario", append([]string{"--only", "latency,speed"}, programs...), "", `no scenario "speed"`},
		{"an argument", append(programs, "latency"), "", `what is "latency"`},
		{"a program that is missing", []string{"--weir", "/nonexistent/weir"}, "", "make build"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := parseFlags(c.args, io.Discard)
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Fatalf("got %v, want it to say %q", err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.results != c.results {
				t.Errorf("results go to %q, want %q", f.results, c.results)
			}
		})
	}
}

func TestFloors(t *testing.T) {
	var f floors
	for _, took := range []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond} {
		f.add([]rig.Part{{Name: "commit", Took: took}, {Name: "read", Took: 10 * time.Millisecond}})
	}
	got := f.beside("create", report.Durations{24 * time.Millisecond}, 50)
	want := report.Figure{Name: "create, p50", Value: 24, Unit: report.UnitMilliseconds, Floor: 12}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figure (-want +got):\n%s", diff)
	}
	parts := []report.Part{{Name: "commit, p50", Value: 2, Unit: report.UnitMilliseconds}, {Name: "read, p50", Value: 10, Unit: report.UnitMilliseconds}}
	if diff := cmp.Diff(parts, f.detail()); diff != "" {
		t.Errorf("detail (-want +got):\n%s", diff)
	}
}

func TestShare(t *testing.T) {
	got := share("statements", rig.Counts{"COMMIT": 10, "INSERT " + strings.Repeat("x", 300): 20}, 10)
	if got.Value != 3 || len(got.Detail) != 2 || got.Detail[0].Value != 2 || got.Detail[1].Value != 1 {
		t.Errorf("got %+v", got)
	}
	if len(got.Detail[0].Name) > 160 {
		t.Errorf("%d characters are too many for a line", len(got.Detail[0].Name))
	}
}

func TestHeartbeats(t *testing.T) {
	for text, want := range map[string]bool{
		"":            true,
		"-- ping":     true,
		";":           true,
		"SELECT $1":   true,
		"LISTEN weir": true,
		"SELECT place.next FROM ( SELECT horizon FROM change_log_horizon) AS place LEFT JOIN change_log c ON c.xid >= $1": true,
		"SELECT id FROM operation WHERE state = $1": false,
		"DELETE FROM change_log WHERE at < $1":      false,
		"BEGIN":                                     false,
		"UPDATE application SET spec = $1":          false,
	} {
		if got := heartbeat(text); got != want {
			t.Errorf("heartbeat(%q) = %v", text, got)
		}
	}
}

func TestStatusPatchIsWhatAnEngineWrites(t *testing.T) {
	revision := revisionOf("test", 1)
	if len(revision) != 40 || revision == revisionOf("test", 2) {
		t.Errorf("%q is no commit of its own", revision)
	}
	text, err := statusPatch(revision).Data(nil)
	if err != nil {
		t.Fatal(err)
	}
	var patch struct {
		Status struct {
			Sync      struct{ Status, Revision string }
			Health    struct{ Status string }
			Resources []struct{ Kind, Status string }
		}
	}
	if err := json.Unmarshal(text, &patch); err != nil {
		t.Fatal(err)
	}
	s := patch.Status
	if s.Sync.Revision != revision || s.Sync.Status != "Synced" || s.Health.Status != "Healthy" || len(s.Resources) != 5 {
		t.Errorf("got %s", text)
	}
}

func TestQuickIsNowhereLarger(t *testing.T) {
	full, quick := fullSizes(), quickSizes()
	if full.latencies%full.block != 0 || quick.latencies%quick.block != 0 {
		t.Error("latencies are measured in whole blocks")
	}
	if quick.latencies > full.latencies || quick.deployments > full.deployments || quick.flood > full.flood || quick.idle > full.idle {
		t.Errorf("quick %+v, full %+v", quick, full)
	}
}
