// SPDX-License-Identifier: Apache-2.0

package plan

import "iter"

// PhaseName is a part of a sync.
type PhaseName string

// Phases, in their order.
const (
	PreSync    PhaseName = "PreSync"
	Sync       PhaseName = "Sync"
	PostSync   PhaseName = "PostSync"
	SyncFail   PhaseName = "SyncFail"
	PostDelete PhaseName = "PostDelete"
)

func (p PhaseName) index() int {
	switch p {
	case PreSync:
		return 0
	case Sync:
		return 1
	case PostSync:
		return 2
	case SyncFail:
		return 3
	default:
		return 4
	}
}

// Condition is when a phase runs.
type Condition string

// Conditions.
const (
	// Always, that is if all before it succeeded.
	Always Condition = "Always"
	// OnFailure: once a phase before it failed.
	OnFailure Condition = "OnFailure"
	// OnDelete: not in a sync, but when the application is deleted.
	OnDelete Condition = "OnDelete"
)

// Action is what a step does.
type Action string

// Actions.
const (
	// Create makes an object that is not in the cluster as ours.
	Create Action = "Create"
	// Apply makes an object that is there what it should be.
	Apply Action = "Apply"
	// Replace writes the whole object instead of what Git sets in it.
	Replace Action = "Replace"
	// Prune deletes an object that Git no longer has.
	Prune Action = "Prune"
	// DeleteHook deletes what a hook left behind in an earlier sync.
	DeleteHook Action = "DeleteHook"
	// RunHook creates a hook's object and waits for its end.
	RunHook Action = "RunHook"
	// Skip does nothing; the reason says why.
	Skip Action = "Skip"
)

// Writes says whether the action changes the cluster.
func (a Action) Writes() bool { return a != Skip }

// Plan is what a sync does, in order.
type Plan struct {
	Phases []Phase `json:"phases"`
	// Blocked is set if prunes are held back; those are Skip steps then.
	Blocked *Blocked `json:"blocked,omitempty"`
	// Warnings are for people; they stop nothing.
	Warnings []string `json:"warnings,omitempty"`
}

// Phase is a part of a plan.
type Phase struct {
	Name  PhaseName `json:"name"`
	When  Condition `json:"when"`
	Waves []Wave    `json:"waves"`
}

// Wave is a set of steps that are done together, in order.
type Wave struct {
	Number int `json:"wave"`
	// Prunes is true for a wave that deletes; such waves come last.
	Prunes bool `json:"prunes,omitempty"`
	// AfterHealthy is true if the wave begins only when everything before it is
	// healthy, or gone. Only the first wave that prunes may begin without: what
	// Git no longer has need not wait for what it has, unless PruneLast says so.
	AfterHealthy bool   `json:"afterHealthy,omitempty"`
	Steps        []Step `json:"steps"`
}

// Step is one thing to do with one object.
type Step struct {
	Action Action `json:"action"`
	Key    Key    `json:"object"`
	Reason string `json:"reason"`
	// Object is what to write, or for Prune and DeleteHook what is there: its UID
	// is the precondition of the deletion. Never part of what is shown.
	Object *Object `json:"-"`

	// Hook is the phase for which a hook runs.
	Hook PhaseName `json:"hook,omitempty"`
	// DeletePolicies of a hook that is run.
	DeletePolicies []DeletePolicy `json:"deletePolicies,omitempty"`

	// Force allows to delete and create again where writing is refused.
	Force bool `json:"force,omitempty"`
	// ServerSideApply was asked for.
	ServerSideApply bool `json:"serverSideApply,omitempty"`
	// SkipDryRunOnMissingResource: that the kind does not exist yet is no error before the step.
	SkipDryRunOnMissingResource bool `json:"skipDryRunOnMissingResource,omitempty"`
	// SkipValidation leaves out the check against the schema.
	SkipValidation bool `json:"skipValidation,omitempty"`
}

// Blocked says that a fuse holds all prunes back.
type Blocked struct {
	// Fuse is which one.
	Fuse Fuse `json:"fuse"`
	// Count of objects that would be pruned, of Live objects.
	Count int `json:"count"`
	Live  int `json:"live"`
	// Reason is for people.
	Reason string `json:"reason"`
}

// Fuse is what holds prunes back.
type Fuse string

// Fuses.
const (
	FuseEmpty Fuse = "Empty"
	FuseCount Fuse = "Count"
	FuseShare Fuse = "Share"
)

// Steps are all steps of a plan in order, with the phase each belongs to.
func (p *Plan) Steps() iter.Seq2[PhaseName, *Step] {
	return func(yield func(PhaseName, *Step) bool) {
		for i := range p.Phases {
			for j := range p.Phases[i].Waves {
				steps := p.Phases[i].Waves[j].Steps
				for k := range steps {
					if !yield(p.Phases[i].Name, &steps[k]) {
						return
					}
				}
			}
		}
	}
}

// Changes counts the steps that change the cluster in a sync that succeeds.
func (p *Plan) Changes() int {
	count := 0
	for _, phase := range p.Phases {
		if phase.When != Always {
			continue
		}
		for _, wave := range phase.Waves {
			for _, step := range wave.Steps {
				if step.Action.Writes() {
					count++
				}
			}
		}
	}
	return count
}
