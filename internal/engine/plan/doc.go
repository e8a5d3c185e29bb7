// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a sync does and in which order. It does nothing
// itself: Build is a pure function from what Git says, what is in the cluster
// and options to a Plan, which can be shown before it is run. The same input
// gives the same plan, in whatever order the objects are passed in.
//
// # Order
//
// A plan is a list of phases, a phase a list of waves, a wave a list of steps.
//
//	PreSync   hooks                                    ┐
//	Sync      objects and hooks, wave by wave          │ one after the other; the
//	          then what is to be pruned, last wave     │ first failure ends it
//	          first                                    │
//	PostSync  hooks                                    ┘
//	SyncFail  hooks, only after a failure
//	PostDelete hooks, only when the application goes
//
// Within a wave, steps follow the kind of their objects (see Tier): what others
// stand on comes first. After that group, kind, namespace and name decide, for no
// better reason than that a plan must not depend on chance. A wave begins when all
// before it is healthy; see Wave for the one exception.
//
// # What is deleted
//
// Only what is passed in as live can be pruned, and the caller passes in only
// what is ours. Of this, nothing is pruned that Git still has, that is a hook,
// that an annotation protects, or that is on its way out already. Two fuses hold
// all prunes of a plan back at once: a desired state without any object (unless
// that is allowed), and a prune budget. Then the steps that would prune are Skip
// steps with the reason, and Plan.Blocked says which fuse it was. So a runner
// that overlooks Blocked deletes nothing either.
//
// # Secrets
//
// A plan is shown to people. Its text and its JSON name objects; they contain
// nothing of what is in them.
package plan
