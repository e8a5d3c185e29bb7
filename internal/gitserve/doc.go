// SPDX-License-Identifier: Apache-2.0

// Package gitserve serves Git repositories from this machine over HTTP, with the
// real git program behind it.
//
//	client ── HTTP on loopback ── Server ── CGI ── git http-backend ── folder of bare repositories
//
// It exists for `weir up`, where the sample repository must come from somewhere,
// and for tests, which want a true Git server rather than an imitation of one.
// It is not a Git hosting service: there are no users and no credentials.
//
// # What keeps it harmless
//
//   - It listens on a loopback address and refuses to be given another.
//   - It answers only requests whose Host is a loopback name, so that a web page
//     in a browser on this machine cannot reach it under a name of its own that
//     happens to resolve to 127.0.0.1.
//   - It passes on the three requests of Git's smart protocol for names that
//     end in .git, and nothing else: no file of a repository is served as a file.
//   - Pushing is off unless asked for.
//   - git sees neither this process's environment nor the machine's or the
//     user's configuration, so it behaves the same everywhere.
package gitserve
