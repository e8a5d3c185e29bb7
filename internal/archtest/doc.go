// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the project's rules that no linter can say, as tests
// over the source of the whole repository, nested modules included.
//
// Which package may import which is not here: the linter's configuration has
// it, under depguard.
//
// A rule is a function over parsed files, with its reason, and with two small
// sources: one that it has to find fault with and one that it has to accept. A
// rule that cannot fail is no rule, so those two are tried first.
package archtest
