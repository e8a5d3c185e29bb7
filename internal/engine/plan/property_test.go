// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawObjects makes objects with distinct keys and all sorts of annotations.
// Few names and kinds, so that desired and live meet.
func drawObjects(t *rapid.T, label string) []*Object {
	kinds := []string{"v1 ConfigMap", "apps/v1 Deployment", "batch/v1 Job", "example.com/v1 Widget", "v1 Service"}
	n := rapid.IntRange(0, 12).Draw(t, label)
	seen := map[Key]bool{}
	var list []*Object
	for range n {
		var changes []with
		if rapid.Bool().Draw(t, "has wave") {
			changes = append(changes, wave(fmt.Sprint(rapid.IntRange(-3, 3).Draw(t, "wave"))))
		}
		if rapid.IntRange(0, 3).Draw(t, "is hook") == 0 {
			changes = append(changes, hook(rapid.SampledFrom([]string{
				"PreSync", "Sync", "PostSync", "SyncFail", "PostDelete", "PreSync,PostSync", "Skip", "PreDelete",
			}).Draw(t, "hook")))
		}
		if rapid.IntRange(0, 2).Draw(t, "has options") == 0 {
			changes = append(changes, options(rapid.SampledFrom([]string{
				"Prune=false", "Delete=false", "Replace=true", "PruneLast=true", "Prune=confirm", "Force=true,Prune=false",
			}).Draw(t, "options")))
		}
		o := object(rapid.SampledFrom(kinds).Draw(t, "kind")+fmt.Sprintf(" n%d", rapid.IntRange(0, 4).Draw(t, "name")), changes...)
		if !seen[o.key] {
			seen[o.key] = true
			list = append(list, o)
		}
	}
	return list
}

func drawOptions(t *rapid.T) Options {
	flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
	return Options{
		RunID: "run", Namespace: "dest",
		Prune: flag("prune"), PruneLast: flag("prune last"), AllowEmpty: flag("allow empty"), CreateNamespace: flag("create namespace"),
		Replace: flag("replace"), ApplyOutOfSyncOnly: flag("out of sync only"),
		Budget: Budget{MaxCount: rapid.IntRange(0, 4).Draw(t, "count"), MaxShare: float64(rapid.IntRange(0, 4).Draw(t, "share")) / 4},
	}
}

func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		desired, live, opts := drawObjects(t, "desired"), drawObjects(t, "live"), drawOptions(t)
		p, err := Build(desired, live, opts)
		if err != nil {
			t.Fatal(err)
		}
		checkOnce(t, p, desired)
		checkPrunes(t, p, desired, live, opts)
		checkOrder(t, p)

		again, err := Build(rapid.Permutation(desired).Draw(t, "desired again"), rapid.Permutation(live).Draw(t, "live again"), opts)
		if err != nil {
			t.Fatal(err)
		}
		if shown(t, p) != shown(t, again) {
			t.Fatalf("the order of the input shows:\n%s\n%s", p, again)
		}
	})
}

func shown(t *rapid.T, p *Plan) string {
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + p.String()
}

// checkOnce: every object of Git once, a hook once in each of its phases.
func checkOnce(t *rapid.T, p *Plan, desired []*Object) {
	count := map[Key]map[PhaseName]int{}
	for phase, step := range p.Steps() {
		if step.Action == DeleteHook || step.Action == Prune {
			continue
		}
		if count[step.Key] == nil {
			count[step.Key] = map[PhaseName]int{}
		}
		count[step.Key][phase]++
	}
	for _, o := range desired {
		phases := []PhaseName{Sync}
		switch text := o.content.GetAnnotations()[hookAnnotation]; text {
		case "", "Skip", "PreDelete":
		default:
			phases = nil
			for word := range strings.SplitSeq(text, ",") {
				phases = append(phases, PhaseName(word))
			}
		}
		if len(count[o.key]) != len(phases) {
			t.Fatalf("%s is in %v, want %v", o, count[o.key], phases)
		}
		for _, phase := range phases {
			if count[o.key][phase] != 1 {
				t.Fatalf("%s is in %v, want once in %v", o, count[o.key], phases)
			}
		}
	}
}

// checkPrunes: nothing is pruned that must not be, and nothing is forgotten.
func checkPrunes(t *rapid.T, p *Plan, desired, live []*Object, opts Options) {
	inGit := map[Key]bool{}
	for _, o := range desired {
		inGit[o.key] = true
	}
	ours := map[Key]*Object{}
	for _, o := range live {
		ours[o.key] = o
	}
	steps := map[Key]*Step{}
	for _, step := range p.Steps() {
		if step.Action == Prune {
			o := ours[step.Key]
			switch {
			case o == nil:
				t.Fatalf("%s is pruned and not ours", step.Key)
			case inGit[step.Key]:
				t.Fatalf("%s is pruned and in Git", step.Key)
			case strings.Contains(o.content.GetAnnotations()[optionsAnnotation], "Prune=false"),
				strings.Contains(o.content.GetAnnotations()[optionsAnnotation], "Delete=false"):
				t.Fatalf("%s is pruned and protected", step.Key)
			case !opts.Prune || p.Blocked != nil:
				t.Fatalf("%s is pruned, with prune %v and blocked %v", step.Key, opts.Prune, p.Blocked)
			case step.Object != o:
				t.Fatalf("%s would be pruned without its UID", step.Key)
			}
		}
		if !inGit[step.Key] {
			steps[step.Key] = step
		}
	}
	for _, o := range live {
		isHook := o.content.GetAnnotations()[hookAnnotation] != "" && o.content.GetAnnotations()[hookAnnotation] != "Skip"
		if !inGit[o.key] && !isHook && steps[o.key] == nil {
			t.Fatalf("the plan says nothing of %s", o)
		}
	}
}

// checkOrder: phases in order; in each, waves ascend, then prunes descend.
func checkOrder(t *rapid.T, p *Plan) {
	for i, phase := range p.Phases {
		if i > 0 && p.Phases[i-1].Name.index() >= phase.Name.index() {
			t.Fatalf("%s is after %s", phase.Name, p.Phases[i-1].Name)
		}
		// One descent for what is pruned at once, one for PruneLast.
		if descents(phase.Waves) > 2 {
			t.Fatalf("prunes are not in reverse order:\n%s", p)
		}
		for j, wave := range phase.Waves {
			if len(wave.Steps) == 0 {
				t.Fatal("an empty wave")
			}
			for _, step := range wave.Steps {
				if step.Action == Prune && !wave.Prunes {
					t.Fatalf("%s is among what is applied", step.Key)
				}
			}
			if j == 0 {
				continue
			}
			before := phase.Waves[j-1]
			switch {
			case before.Prunes && !wave.Prunes:
				t.Fatal("prune before apply")
			case !wave.Prunes && before.Number >= wave.Number:
				t.Fatalf("wave %d after %d", wave.Number, before.Number)
			}
		}
	}
}

func descents(waves []Wave) int {
	count := 0
	for i, wave := range waves {
		if wave.Prunes && (i == 0 || !waves[i-1].Prunes || waves[i-1].Number <= wave.Number) {
			count++
		}
	}
	return count
}

func BenchmarkBuild(b *testing.B) {
	var desired []*Object
	for i := range 500 {
		desired = append(desired, object(fmt.Sprintf("apps/v1 Deployment d%d", i), wave(fmt.Sprint(i%5))))
	}
	for b.Loop() {
		if _, err := Build(desired, desired, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
