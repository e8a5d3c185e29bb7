// SPDX-License-Identifier: Apache-2.0

package domain

// SealedCredential names the row of a repository credential for sealing. The
// repository is part of the name, so that a credential cannot be opened for any
// other: not even by somebody who can write to the database.
func SealedCredential(id CredentialID, repository string) string {
	return string(id) + " for " + repository
}
