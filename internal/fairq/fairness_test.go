// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTurnsAreBounded is the promise to tenants: while a workspace has an item that may run, every other one gets at
// most its weight before it.
func TestTurnsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &fairness{limit: rapid.IntRange(0, 3).Draw(t, "cap"), workspaces: map[string]*fairWorkspace{}}
		for _, ws := range []string{"a", "b", "c", "d", "e"} {
			f.workspaces[ws] = &fairWorkspace{weight: rapid.IntRange(1, 4).Draw(t, "weight of "+ws), passed: map[string]int{}}
		}
		f.q = New(Options[Key]{PerWorkspace: f.limit, Weight: func(ws string) int { return f.workspaces[ws].weight }})
		t.Repeat(map[string]func(*rapid.T){"add": f.add, "burst": f.burst, "get": f.get, "done": f.done})
	})
}

type fairness struct {
	q          *Queue[Key]
	limit      int
	workspaces map[string]*fairWorkspace
	running    []Key
	added      int
}

type fairWorkspace struct {
	weight         int
	ready, running int
	passed         map[string]int // items of others handed out while it could have had its turn
}

func (f *fairness) mayRun(w *fairWorkspace) bool {
	return w.ready > 0 && (f.limit == 0 || w.running < f.limit)
}

func (f *fairness) add(t *rapid.T) { f.addN(t, 1) }

func (f *fairness) burst(t *rapid.T) { f.addN(t, rapid.IntRange(2, 20).Draw(t, "items")) }

func (f *fairness) addN(t *rapid.T, n int) {
	ws := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "workspace")
	for range n {
		f.added++
		f.q.Add(Key{Workspace: ws, Application: string(rune(f.added))})
	}
	f.change(ws, func(w *fairWorkspace) { w.ready += n })
}

// change begins a new count for a workspace that could not have had a turn before and can now.
func (f *fairness) change(ws string, do func(*fairWorkspace)) {
	w := f.workspaces[ws]
	before := f.mayRun(w)
	do(w)
	if !before {
		clear(w.passed)
	}
}

func (f *fairness) get(t *rapid.T) {
	possible := false
	for _, w := range f.workspaces {
		possible = possible || f.mayRun(w)
	}
	if !possible {
		t.Skip("nothing may run")
	}
	if f.q.rotation.front == nil {
		t.Fatal("Get would block, but items may run")
	}
	k, _ := f.q.Get()
	f.running = append(f.running, k)
	for ws, w := range f.workspaces {
		if ws == k.Workspace || !f.mayRun(w) {
			continue
		}
		w.passed[k.Workspace]++
		if got, most := w.passed[k.Workspace], f.workspaces[k.Workspace].weight; got > most {
			t.Fatalf("%q had %d items while %q waited for its turn, want at most its weight %d", k.Workspace, got, ws, most)
		}
	}
	served := f.workspaces[k.Workspace]
	served.ready--
	served.running++
	clear(served.passed)
}

func (f *fairness) done(t *rapid.T) {
	if len(f.running) == 0 {
		t.Skip("nothing runs")
	}
	i := rapid.IntRange(0, len(f.running)-1).Draw(t, "item")
	k := f.running[i]
	f.running = slices.Delete(f.running, i, i+1)
	f.q.Done(k)
	f.change(k.Workspace, func(w *fairWorkspace) { w.running-- })
}
