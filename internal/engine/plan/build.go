// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// entry is a step with its place.
type entry struct {
	phase  PhaseName
	prunes bool
	// late: pruned only after all else is healthy.
	late bool
	wave int
	// first goes before its whole wave.
	first bool
	// rank orders the steps of one object.
	rank int
	step Step
}

// builder collects entries.
type builder struct {
	opts    Options
	live    map[Key]*Object
	desired []described
	keys    map[Key]bool
	entries []entry
	plan    Plan
}

// described is an object with what its annotations say.
type described struct {
	*Object
	traits
}

// Build plans a sync: from what Git says and from the objects in the cluster
// that are ours. Neither is changed. The error wraps ErrInvalid.
func Build(desired, live []*Object, opts Options) (*Plan, error) {
	b := &builder{opts: opts}
	if err := b.read(desired, live); err != nil {
		return nil, err
	}
	for i := range b.desired {
		b.planDesired(&b.desired[i])
	}
	b.createNamespace()
	if err := b.prune(); err != nil {
		return nil, err
	}
	b.warnUnmatched()
	return b.finish(), nil
}

// read checks and indexes the input.
func (b *builder) read(desired, live []*Object) error {
	b.live = make(map[Key]*Object, len(live))
	for _, o := range live {
		b.live[o.key] = o
	}
	var errs []error
	for _, o := range desired {
		d := described{Object: o}
		var err error
		if d.traits, err = readTraits(o); err == nil {
			err = d.settleName(b.opts.RunID)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		b.desired = append(b.desired, d)
	}
	slices.SortStableFunc(b.desired, func(a, b described) int {
		return cmp.Or(compareKeys(a.key, b.key), cmp.Compare(a.source, b.source))
	})
	b.keys = make(map[Key]bool, len(b.desired))
	for i, d := range b.desired {
		if i > 0 && b.desired[i-1].key == d.key {
			errs = append(errs, &DuplicateError{Key: d.key, Sources: [2]string{b.desired[i-1].origin(), d.origin()}})
		}
		b.keys[d.key] = true
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// planDesired adds the steps for one object of Git.
func (b *builder) planDesired(d *described) {
	switch {
	case d.skip:
		b.add(d, Sync, Step{Action: Skip, Reason: "its hook annotation says Skip"})
	case d.hook:
		b.planHook(d)
	default:
		b.add(d, Sync, b.writeStep(d))
	}
}

func (b *builder) writeStep(d *described) Step {
	if !b.opts.selected(d.key) {
		return Step{Action: Skip, Reason: "not among the resources to sync"}
	}
	if b.opts.ApplyOutOfSyncOnly && b.opts.InSync[d.key] {
		return Step{Action: Skip, Reason: "in sync"}
	}
	step := b.flags(d)
	switch {
	case b.live[d.key] == nil:
		step.Action, step.Reason = Create, "not in the cluster"
	case d.on("Replace", b.opts.Replace):
		step.Action, step.Reason = Replace, "Replace=true"
	case b.opts.InSync[d.key]:
		step.Action, step.Reason = Apply, "in sync; applied again"
	default:
		step.Action, step.Reason = Apply, "may differ from Git"
		if b.opts.InSync != nil {
			step.Reason = "differs from Git"
		}
	}
	return step
}

// flags are the options that go with a write.
func (b *builder) flags(d *described) Step {
	return Step{
		Object:                      d.Object,
		Force:                       d.on("Force", b.opts.Force),
		ServerSideApply:             d.on("ServerSideApply", b.opts.ServerSideApply),
		SkipDryRunOnMissingResource: d.on("SkipDryRunOnMissingResource", b.opts.SkipDryRunOnMissingResource),
		SkipValidation:              !d.on("Validate", !b.opts.SkipValidation),
	}
}

// on is an object's own option or else the application's.
func (t *traits) on(option string, otherwise bool) bool {
	switch t.options[option] {
	case "true":
		return true
	case "false":
		return false
	default:
		return otherwise
	}
}

// createNamespace puts the destination before everything else. It is not ours
// to prune later, so it is nowhere in desired or live; where Git has the same
// Namespace, Git's is the one.
func (b *builder) createNamespace() {
	if !b.opts.CreateNamespace {
		return
	}
	if b.opts.Namespace == "" {
		b.plan.Warnings = append(b.plan.Warnings, "CreateNamespace=true has no effect: the destination names no namespace")
		return
	}
	key := Key{Kind: "Namespace", Name: b.opts.Namespace}
	if b.keys[key] {
		return
	}
	content := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	content.SetName(key.Name)
	wave := 0
	for _, e := range b.entries {
		if e.phase == PreSync {
			wave = min(wave, e.wave)
		}
	}
	b.entries = append(b.entries, entry{phase: PreSync, wave: wave, first: true, step: Step{
		Action: Create, Key: key, Object: NewObject(content, ""),
		Reason: "CreateNamespace=true: the destination, if it is not there yet", ServerSideApply: true,
	}})
}

func (b *builder) add(d *described, phase PhaseName, step Step) {
	step.Key = d.key
	if step.Object == nil && step.Action != Skip {
		step.Object = d.Object
	}
	b.entries = append(b.entries, entry{phase: phase, wave: d.wave, step: step})
}

// warnUnmatched names resources that were asked for and are nowhere: a sync that
// does nothing because of a misspelt name should not look like a success.
func (b *builder) warnUnmatched() {
	var names []string
	for _, resource := range b.opts.Resources {
		if !b.knows(resource) {
			names = append(names, resource.String())
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		b.plan.Warnings = append(b.plan.Warnings,
			fmt.Sprintf("to be synced, but neither in Git nor in the cluster: %s", strings.Join(slices.Compact(names), ", ")))
	}
}

// knows says whether Git or the cluster has a resource that was asked for.
func (b *builder) knows(resource Key) bool {
	for key := range b.keys {
		if selects(resource, key) {
			return true
		}
	}
	for key := range b.live {
		if selects(resource, key) {
			return true
		}
	}
	return false
}

// compareEntries is the order of the whole plan.
func compareEntries(a, b entry) int {
	if c := cmp.Or(
		a.phase.index()-b.phase.index(),
		compareBools(a.prunes, b.prunes),
		compareBools(a.late, b.late),
	); c != 0 {
		return c
	}
	if a.prunes {
		// Backwards: what was built on something goes before it.
		a, b = b, a
	}
	return cmp.Or(
		cmp.Compare(a.wave, b.wave),
		compareBools(b.first, a.first),
		compareObjects(a.step.Key, b.step.Key),
		a.rank-b.rank,
	)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// finish sorts the entries into phases and waves.
func (b *builder) finish() *Plan {
	slices.SortFunc(b.entries, compareEntries)
	b.plan.Phases = []Phase{}
	for i, e := range b.entries {
		newPhase := i == 0 || b.entries[i-1].phase != e.phase
		if newPhase {
			b.plan.Phases = append(b.plan.Phases, Phase{Name: e.phase, When: e.phase.condition()})
		}
		phase := &b.plan.Phases[len(b.plan.Phases)-1]
		if newPhase || !sameWave(b.entries[i-1], e) {
			startsPruning := e.prunes && (newPhase || !b.entries[i-1].prunes)
			phase.Waves = append(phase.Waves, Wave{
				Number: e.wave, Prunes: e.prunes,
				AfterHealthy: i > 0 && (!startsPruning || e.late),
			})
		}
		wave := &phase.Waves[len(phase.Waves)-1]
		wave.Steps = append(wave.Steps, e.step)
	}
	return &b.plan
}

func sameWave(a, b entry) bool {
	return a.prunes == b.prunes && a.late == b.late && a.wave == b.wave
}

func (p PhaseName) condition() Condition {
	switch p {
	case SyncFail:
		return OnFailure
	case PostDelete:
		return OnDelete
	default:
		return Always
	}
}
