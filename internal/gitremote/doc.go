// SPDX-License-Identifier: Apache-2.0

// Package gitremote reads the addresses of Git repositories and proves that a
// repository answers with a credential.
//
// # Addresses
//
// Parse takes an address apart and Remote.String puts it together again, so that
// what is passed on to other programs is what was understood here. Three forms
// are taken: https://host/path, ssh://user@host/path and user@host:path. Git has
// others that run commands (ext::), read files (file://) or begin with a hyphen
// and become options; none of them has a place in a service with strangers.
//
// Remote.Key compares. Two addresses with one key are one repository; see there
// for what counts as the same.
//
// # Proof
//
// Check lists the repository's references, the first step of every clone, and
// reads only the beginning of the answer. No program is started:
//
//	https  GET <path>/info/refs?service=git-upload-pack   (protocol 2, 1 or 0)
//	ssh    exec git-upload-pack '<path>'                   (protocol 0)
//	          │
//	          └─▶ first pkt-lines: a service, a version or a reference ─▶ it is Git
//
// Both connect through internal/tenantnet, which judges the address. The
// password goes to the repository's origin and to no other: a redirect elsewhere
// is an error where there is a credential. Host keys of SSH servers are checked
// against known_hosts; not to check them has to be asked for by name.
//
// Errors are for tenants: which of a few things went wrong (errors.Is with the
// sentinels), a sentence with a remedy, and no text that a server sent. A server
// may answer with what it was given.
package gitremote
