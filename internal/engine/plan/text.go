// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
)

// String is the plan for people, one line for each step.
func (p *Plan) String() string {
	var out strings.Builder
	if p.Blocked != nil {
		fmt.Fprintf(&out, "Prunes are held back: %s\n", p.Blocked.Reason)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(&out, "Warning: %s\n", warning)
	}
	for i := range p.Phases {
		p.Phases[i].write(&out)
	}
	if len(p.Phases) == 0 {
		out.WriteString("Nothing to do.\n")
	}
	return out.String()
}

func (p *Phase) write(out *strings.Builder) {
	out.WriteString(string(p.Name))
	switch p.When {
	case OnFailure:
		out.WriteString(" (only if the sync fails)")
	case OnDelete:
		out.WriteString(" (only when the application is deleted)")
	case Always:
	}
	out.WriteByte('\n')
	for i := range p.Waves {
		wave := &p.Waves[i]
		fmt.Fprintf(out, "  wave %d", wave.Number)
		if wave.Prunes {
			out.WriteString(", prune")
		}
		if wave.Prunes && wave.AfterHealthy {
			out.WriteString(", after all else is healthy or gone")
		}
		out.WriteByte('\n')
		for j := range wave.Steps {
			fmt.Fprintf(out, "    %s\n", &wave.Steps[j])
		}
	}
}

// String is the step for people.
func (s *Step) String() string {
	text := fmt.Sprintf("%-10s %s: %s", s.Action, s.Key, s.Reason)
	var flags []string
	for _, flag := range []struct {
		name string
		on   bool
	}{
		{"force", s.Force},
		{"server-side apply", s.ServerSideApply},
		{"no dry run if its kind is missing", s.SkipDryRunOnMissingResource},
		{"no validation", s.SkipValidation},
	} {
		if flag.on {
			flags = append(flags, flag.name)
		}
	}
	for _, policy := range s.DeletePolicies {
		flags = append(flags, "delete: "+string(policy))
	}
	if len(flags) > 0 {
		text += " [" + strings.Join(flags, ", ") + "]"
	}
	return text
}
