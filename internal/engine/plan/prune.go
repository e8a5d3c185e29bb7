// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// candidate is a live object that Git does not have.
type candidate struct {
	described
	// protected says why it stays, if it does.
	protected string
}

// prune adds a step for every live object that Git does not have.
func (b *builder) prune() error {
	candidates, err := b.candidates()
	if err != nil {
		return err
	}
	count := 0
	for i := range candidates {
		candidates[i].protected = b.pruneProtection(&candidates[i].described)
		if candidates[i].protected == "" {
			count++
		}
	}
	if count > 0 {
		b.plan.Blocked = b.fuse(count)
	}
	for i := range candidates {
		c := &candidates[i]
		reason := c.protected
		if reason == "" && b.plan.Blocked != nil {
			reason = "no longer in Git; held back: " + b.plan.Blocked.Reason
		}
		b.deletion(&c.described, reason, "no longer in Git")
	}
	return nil
}

// candidates are the live objects that are not in Git and not hooks, in order.
// A live object's annotations can have been edited by anyone; what cannot be
// read of them must neither stop the sync nor take a protection away. So a hook
// of an unknown kind is a hook, and of a bad wave only the wave is lost.
func (b *builder) candidates() ([]candidate, error) {
	var list []candidate
	var errs []error
	for key, o := range b.live {
		if b.keys[key] {
			continue
		}
		if key.Name == "" || key.Kind == "" {
			errs = append(errs, o.fault("metadata.name", "is missing in a live object"))
			continue
		}
		// The error is of no use here, as said above; the traits are what could be read.
		if t, _ := readTraits(o); !t.hook {
			list = append(list, candidate{described: described{Object: o, traits: t}})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int { return compareKeys(a.key, b.key) })
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return list, errors.Join(errs...)
}

// pruneProtection says why an object stays in the cluster, or nothing.
//
// Delete=false is, to the letter, about the deletion of the application. It
// protects here as well: who wants an object to outlive its application does not
// want it gone with a commit.
func (b *builder) pruneProtection(d *described) string {
	switch {
	case !b.opts.selected(d.key):
		return "no longer in Git; not among the resources to sync"
	case d.has("Prune", "false"):
		return "no longer in Git; kept, its sync options say Prune=false"
	case d.has("Delete", "false"):
		return "no longer in Git; kept, its sync options say Delete=false"
	case d.keep:
		return "no longer in Git; kept, its annotation says " + helmResourceAnnotation + ": keep"
	case d.skip:
		return "no longer in Git; kept, its hook annotation says Skip"
	case d.content.GetDeletionTimestamp() != nil:
		return "no longer in Git; is being deleted already"
	case !b.opts.Prune:
		return "no longer in Git; pruning is off"
	case !b.opts.PruneConfirmed && (b.opts.Confirm || d.has("Prune", "confirm") || d.has("Delete", "confirm")):
		return "no longer in Git; kept until somebody confirms the deletion"
	default:
		return ""
	}
}

// fuse says what holds the prunes back, if anything does.
func (b *builder) fuse(count int) *Blocked {
	blocked := &Blocked{Count: count, Live: len(b.live)}
	budget := b.opts.Budget
	switch share := float64(count) / float64(len(b.live)); {
	case !b.opts.AllowEmpty && !b.desiresAny():
		blocked.Fuse = FuseEmpty
		blocked.Reason = fmt.Sprintf("Git has no objects at all, and %d would be deleted; allow empty if that is meant", count)
	case count <= budget.Floor:
		return nil
	case budget.MaxCount > 0 && count > budget.MaxCount:
		blocked.Fuse = FuseCount
		blocked.Reason = fmt.Sprintf("%d of %d objects would be deleted, and a sync may delete %d; raise the prune budget if that is meant",
			count, len(b.live), budget.MaxCount)
	case budget.MaxShare > 0 && share > budget.MaxShare:
		blocked.Fuse = FuseShare
		blocked.Reason = fmt.Sprintf("%d of %d objects would be deleted, and a sync may delete %g%% of them; raise the prune budget if that is meant",
			count, len(b.live), 100*budget.MaxShare)
	default:
		return nil
	}
	return blocked
}

// desiresAny says whether Git has anything that stays. Hooks come and go.
func (b *builder) desiresAny() bool {
	return slices.ContainsFunc(b.desired, func(d described) bool { return !d.hook })
}

// deletion adds a Prune step, or a Skip step where something holds it back.
func (b *builder) deletion(d *described, held, reason string) {
	e := entry{
		phase: Sync, prunes: true, wave: d.wave,
		late: d.on("PruneLast", b.opts.PruneLast),
		step: Step{Action: Prune, Key: d.key, Object: d.Object, Reason: reason},
	}
	if held != "" {
		e.step.Action, e.step.Object, e.step.Reason = Skip, nil, held
	}
	b.entries = append(b.entries, e)
}

// BuildDelete plans the deletion of an application: everything live that is
// ours, last wave first, then the PostDelete hooks of Git. Objects stay that say
// Delete=false, or that Helm is to keep; Delete=confirm stays until PruneConfirmed.
// Neither fuse applies: that all goes is what was asked for.
func BuildDelete(desired, live []*Object, opts Options) (*Plan, error) {
	b := &builder{opts: opts}
	b.opts.Resources = nil
	if err := b.read(desired, live); err != nil {
		return nil, err
	}
	afterwards := map[Key]bool{}
	for i := range b.desired {
		d := &b.desired[i]
		if slices.Contains(d.phases, PostDelete) {
			afterwards[d.key] = true
			d.phases = []PhaseName{PostDelete}
			b.runHook(d, PostDelete)
		}
	}
	for key, o := range b.live {
		if afterwards[key] {
			continue
		}
		// Faults in the annotations of what is to go do not matter any more.
		t, _ := readTraits(o)
		d := &described{Object: o, traits: t}
		b.deletion(d, b.deleteProtection(d), "the application is being deleted")
	}
	return b.finish(), nil
}

func (b *builder) deleteProtection(d *described) string {
	switch {
	case d.has("Delete", "false"):
		return "kept, its sync options say Delete=false"
	case d.keep:
		return "kept, its annotation says " + helmResourceAnnotation + ": keep"
	case d.content.GetDeletionTimestamp() != nil:
		return "is being deleted already"
	case !b.opts.PruneConfirmed && d.has("Delete", "confirm"):
		return "kept until somebody confirms the deletion"
	default:
		return ""
	}
}
