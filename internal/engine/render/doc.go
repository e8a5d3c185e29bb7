// SPDX-License-Identifier: Apache-2.0

// Package render makes manifests of what is in a repository: plain YAML and JSON,
// Kustomize, Helm.
//
//	source.Tree ──Gather──▶ Request ──Renderer──▶ Result
//	             which files           what they say
//
// Gather decides what kind of source a folder is and which files can matter: the
// folder itself, the folders that a kustomization refers to, the values files of a
// chart. The result is a Request, with these files and with a Key, the hash of
// their names and ids and of what the application says. Rendering is then a
// function of the Request and nothing else, so that
//
//   - Cache renders a Key once. A commit elsewhere in the repository leaves the
//     ids of these files what they were, and with them the Key; it is found
//     without reading the files.
//   - Child can do it in a process that is thrown away afterwards.
//
// # Strangers
//
// What is rendered was written by strangers, and templates are programs. Three
// lines of defence:
//
//   - Gather refuses what reaches outside: remote bases and files of Kustomize,
//     charts inflated by it, plugins, links. It parses no more than it must, and
//     what it parses has passed the guard in yaml.go.
//   - The renderers have nothing to reach with: an in-memory filesystem, no lookup
//     function, no name resolution, no plugins, no HTTP, no remote JSON schemas.
//   - Child runs them with an empty environment, limits on memory, CPU, files and
//     processes, a deadline, and without a network where the kernel allows that.
//
// InProcess has the first two only. It is for files that the caller trusts as
// much as itself, such as those on a developer's laptop.
//
// # Errors
//
// An *Error names the file, the problem and the remedy, and its kind for
// errors.Is. It survives the way out of a child. Texts of Helm and Kustomize are
// part of it, cut to a length: they are about the tenant's own files and go to
// nobody else.
package render
