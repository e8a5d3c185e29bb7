// SPDX-License-Identifier: Apache-2.0

// Package source reads Git repositories of strangers, as data.
//
//	Resolve   revision ──ls-remote──▶ commit
//	Tree      commit ──fetch, once──▶ bare clone ──ls-tree, once──▶ Tree
//	Tree.Read entries ──cat-file──▶ bytes
//
// The work is done by the git program, in bare clones that the Cache keeps in its
// folder: one for each project and URL, so that nothing one project fetched is
// ever seen by another. A fetch is shallow and brings no file that is larger than
// what may be read anyway, where the server can leave them out. The clone
// remembers its last commits as references, so the next fetch brings only what
// changed.
//
// However many callers ask for the same thing at the same time, it is done once
// (see flights). A commit is fetched once and listed once; after that the id of
// each folder is known without starting a process. That id (Tree.Hash) changes
// only with what is in the folder, so a commit elsewhere in a large repository
// costs its readers nothing.
//
// # Hostile repositories
//
// There is never a work tree. Hooks, filters, submodules and large-file pointers
// are things that git does while it writes one, and so do not happen; on top they
// are turned off. A symbolic link is an Entry of kind Symlink, and nothing follows
// it. Paths are compared and read as names in a list, never given to the
// operating system: names that differ in case only are two names, and a tree with
// "..", "." or ".git" in it is refused.
//
// Each git process sees an environment made here and nothing of ours: no
// configuration of the machine or the user, no prompts, no credential helpers, a
// home folder of its own, and only the protocols that are allowed. Processes that
// read a clone are allowed none. Text from outside reaches git neither as an
// option nor as an expression: addresses are parsed and put together again
// (internal/gitremote) and passed in the environment, revisions are checked
// against what a reference may be called, and everything else is an object id.
//
// # Hostile addresses
//
// git does not look names up. The address is judged by internal/tenantnet, and
// git is told the judged addresses (http.curloptResolve; HostName for ssh).
// Redirects are not followed, and with them neither the alternates of the dumb
// protocol: both would lead to an address that nobody has judged.
//
// # Credentials
//
// A password travels in the environment as a header that is bound to the origin
// of the URL, a private key in a file of mode 0600 in a folder that is removed
// with the process. Neither is on a command line, in a URL or in a clone. What git
// and servers print is thrown away, since a server may print what it was sent:
// which of the usual things went wrong is found out by asking the server once more
// with gitremote.Check, whose errors are types.
//
// # Limits
//
// Bytes of a clone, number of entries, bytes of a file, bytes read at once and
// time each have a limit and an error of their own. The clone is measured while it
// grows, and the processes are killed, as a group, when it is too large, when the
// time is up, and when nobody waits any more.
package source
