// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"slices"
	"strings"
)

// Options say how to sync.
type Options struct {
	// RunID names this sync. Hooks that ask for a generated name get theirs from
	// it, so that planning the same sync again, after a crash, finds them again.
	RunID string
	// Namespace is the application's destination.
	Namespace string

	// Prune deletes what Git no longer has. Without it, such objects are Skip steps.
	Prune bool
	// PruneLast prunes only when everything else is healthy.
	PruneLast bool
	// PruneConfirmed: a person has agreed to delete what asks for it
	// (Prune=confirm, Delete=confirm).
	PruneConfirmed bool
	// Confirm makes every prune need PruneConfirmed.
	Confirm bool
	// AllowEmpty prunes also when Git has no object at all.
	AllowEmpty bool
	// Budget limits how much one sync may prune.
	Budget Budget

	// Replace, Force and ServerSideApply hold for all objects that do not say otherwise.
	Replace, Force, ServerSideApply bool
	// SkipDryRunOnMissingResource, likewise.
	SkipDryRunOnMissingResource bool
	// SkipValidation, likewise (Validate=false).
	SkipValidation bool
	// CreateNamespace creates the destination first.
	CreateNamespace bool
	// FailOnSharedResource and RespectIgnoreDifferences are for whoever runs the
	// plan; they change nothing in it.
	FailOnSharedResource, RespectIgnoreDifferences bool
	// PropagationPolicy of deletions: foreground (also if empty), background or orphan.
	PropagationPolicy string

	// ApplyOutOfSyncOnly leaves alone what InSync names.
	ApplyOutOfSyncOnly bool
	// InSync are the objects that were found equal to Git.
	InSync map[Key]bool

	// Resources restricts the sync to these, and runs no hooks. Empty: everything.
	Resources []Key
}

// Budget is how much one sync may prune. Its zero value is no limit.
type Budget struct {
	// MaxCount of objects; 0 for no limit.
	MaxCount int
	// MaxShare of the live objects, between 0 and 1; 0 for no limit.
	MaxShare float64
	// Floor is how many objects may always be pruned, whatever their share: one
	// of two objects is half of an application, and still only one object.
	Floor int
}

// selected says whether the sync covers an object.
func (o *Options) selected(k Key) bool {
	return len(o.Resources) == 0 || slices.ContainsFunc(o.Resources, func(r Key) bool { return selects(r, k) })
}

// selects says whether a resource that was asked for is this object. Who names no
// namespace means the name wherever it is.
func selects(resource, k Key) bool {
	if resource.Namespace == "" {
		k.Namespace = ""
	}
	return resource == k
}

// AddSyncOptions reads the application's list of sync options, as in
// spec.syncPolicy.syncOptions, into the options. What it does not know is an
// error: an option that is silently not heeded is worse than a sync that waits.
func (o *Options) AddSyncOptions(list []string) error {
	var errs []error
	for _, text := range list {
		if err := o.addSyncOption(text); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (o *Options) addSyncOption(text string) error {
	name, value, found := strings.Cut(strings.TrimSpace(text), "=")
	if !found {
		return &OptionError{Option: text, Problem: "write it as Name=value"}
	}
	switch name {
	case "PrunePropagationPolicy":
		if value != "foreground" && value != "background" && value != "orphan" {
			return &OptionError{Option: text, Problem: "use foreground, background or orphan"}
		}
		o.PropagationPolicy = value
		return nil
	case "Prune":
		if value == "confirm" {
			o.Confirm = true
			return nil
		}
	case "Delete":
		// Of an application, not of an object: it concerns who deletes the application.
		if value == "confirm" {
			return nil
		}
	}
	if value != "true" && value != "false" {
		return &OptionError{Option: text, Problem: "use true or false"}
	}
	return o.setSwitch(text, name, value == "true")
}

func (o *Options) setSwitch(text, name string, on bool) error {
	switch name {
	case "Prune":
		if !on {
			o.Prune = false
		}
	case "Delete", "ClientSideApplyMigration":
		// Not about planning.
	case "Validate":
		o.SkipValidation = !on
	case "PruneLast":
		o.PruneLast = on
	case "Replace":
		o.Replace = on
	case "Force":
		o.Force = on
	case "ServerSideApply":
		o.ServerSideApply = on
	case "SkipDryRunOnMissingResource":
		o.SkipDryRunOnMissingResource = on
	case "CreateNamespace":
		o.CreateNamespace = on
	case "ApplyOutOfSyncOnly":
		o.ApplyOutOfSyncOnly = on
	case "FailOnSharedResource":
		o.FailOnSharedResource = on
	case "RespectIgnoreDifferences":
		o.RespectIgnoreDifferences = on
	default:
		return &OptionError{Option: text, Problem: "there is no such option"}
	}
	return nil
}
