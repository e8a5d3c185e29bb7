// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// planHook adds a hook to each phase it names.
func (b *builder) planHook(d *described) {
	if len(d.phases) == 0 {
		b.add(d, Sync, Step{
			Action: Skip,
			Reason: "a hook that no sync runs: " + strings.Join(d.unsupported, ", "),
		})
		return
	}
	for _, phase := range d.phases {
		if len(b.opts.Resources) > 0 {
			b.add(d, phase, Step{Action: Skip, Hook: phase, Reason: "hooks do not run when only some resources are synced"})
			continue
		}
		b.runHook(d, phase)
	}
}

// runHook adds the run and, before it, the removal of what the last run left.
func (b *builder) runHook(d *described, phase PhaseName) {
	old := b.live[d.key]
	// In a second phase of the same sync the object is there because the first
	// phase made it, so it is removed again whatever was live at the beginning.
	again := phase != d.phases[0]
	if slices.Contains(d.policies, BeforeHookCreation) && (old != nil || again) {
		reason := "an earlier run left it"
		if old == nil {
			old, reason = d.Object, "an earlier phase of this sync made it"
		}
		b.entries = append(b.entries, entry{phase: phase, wave: d.wave, step: Step{
			Action: DeleteHook, Key: d.key, Object: old, Hook: phase, Reason: reason,
		}})
	}
	step := b.flags(d)
	step.Action, step.Key, step.Hook = RunHook, d.key, phase
	step.Reason = string(phase) + " hook"
	step.DeletePolicies = d.policies
	b.entries = append(b.entries, entry{phase: phase, wave: d.wave, rank: 1, step: step})
}

// maxGenerated is how much of a generateName is kept: with the suffix the name
// still fits into a label's value, which Jobs make of their names.
const maxGenerated = 52

// settleName gives a hook with generateName its name. The API server would pick
// a random one; then a sync that is resumed after a crash could not tell whether
// its hook has run. The name comes from the run, and from the content, which
// tells two such hooks of one sync apart.
func (d *described) settleName(runID string) error {
	if d.key.Kind == "" {
		return d.fault("kind", "is missing")
	}
	if d.key.Name != "" {
		return nil
	}
	prefix := d.content.GetGenerateName()
	if prefix == "" {
		return d.fault("metadata.name", "is missing")
	}
	if !d.hook {
		return d.fault("metadata.generateName", "works for hooks only: give it a metadata.name")
	}
	if runID == "" {
		return d.fault("metadata.generateName", "cannot be resolved without a run id")
	}
	content, err := json.Marshal(d.content.Object)
	if err != nil {
		return d.fault("metadata.generateName", fmt.Sprintf("the object cannot be written as JSON: %v", err))
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %s ", len(runID), runID)
	sum.Write(content)
	if len(prefix) > maxGenerated {
		prefix = prefix[:maxGenerated]
	}
	named := d.content.DeepCopy()
	named.SetGenerateName("")
	named.SetName(prefix + hex.EncodeToString(sum.Sum(nil))[:10])
	d.Object = NewObject(named, d.source)
	return nil
}
