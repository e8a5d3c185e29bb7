// SPDX-License-Identifier: Apache-2.0

// Package cli is the tenant's command line: get, describe, sync, history, env
// and repo. It works with the tenant's own kubeconfig and nothing else: it
// knows no database, and whatever it may do, the tenant may do with kubectl.
//
// # How a command works
//
// A command is a struct of its flags with one run method. It opens a session
// (kubeconfig, context and namespace become a client), reads or writes tenant
// resources through it, and prints. The session's client has the few kinds that
// tenants use built in, so that no command spends a round trip on discovery,
// and no permission on it.
//
// # Waiting
//
// Whatever waits (sync, get --watch, env add, repo add) goes through follow: a
// list and then a watch, listed again whenever the watch ends for any reason.
// Callers are handed what changed against what they were handed last, so a lost
// connection costs them nothing but time, and they decide on states, never on
// events.
//
// # Output
//
// What tenants' resources say can come from a stranger's repository or cluster,
// so every text is made plain (no control characters) before it reaches a
// terminal. Credentials are held in a type that prints as "[redacted]"; they
// reach the API server and nothing else.
//
// # Errors
//
// An error carries the exit code and says what to do: explain turns the API
// server's answers into the missing permission, the missing definitions, the
// close name. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 timed out,
// 130 interrupted.
package cli
