// SPDX-License-Identifier: Apache-2.0

// Package apply runs a plan against a cluster.
//
// # How a plan is run
//
//	for each phase        PreSync, Sync, PostSync; after a failure SyncFail instead of the rest
//	  for each wave       in order; one that says so begins when all before it is healthy, or gone
//	    for each step     in order: written, deleted, or a hook begun
//	    hooks of the wave are waited for
//
// A step that fails does not keep the other steps of its wave from being tried: a
// tenant learns all that is wrong at once. But no later wave begins.
//
// # Who writes
//
// Objects are written by server-side apply under one field manager, so that what
// others set in them stays. The client that is given decides as whom: an engine
// impersonates the tenant's service account, and the cluster itself refuses what
// that may not do.
//
// # Interrupted and resumed
//
// Nothing is remembered between runs. Applying again what is applied changes
// nothing, deleting needs the UID that the plan saw, and a hook's object has a name
// that is the same for the same run, so a second run finds it and goes on waiting.
// So a run that a crash has cut short is simply run again.
//
// # Waiting
//
// What is waited for is watched, object by object, and judged with each change;
// there is no polling. The context's end ends the run.
package apply
