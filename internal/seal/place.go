// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"encoding/binary"

	"github.com/weir-gitops/weir/internal/domain"
)

// Place is where a sealed value stands: a column of a row of a tenant.
type Place struct {
	Tenant domain.TenantID
	Table  string
	Row    string
	Column string
}

// Sealed is an encrypted value, as it stands in its row.
type Sealed struct {
	// KeyID is the id of the tenant's data key; it goes into the row's key_id.
	KeyID string
	// Text is the format, the nonce, the encrypted value and its tag.
	Text []byte
}

func (p Place) check() error {
	if p.Tenant == "" || p.Table == "" || p.Row == "" || p.Column == "" {
		return ErrIncompletePlace
	}
	return nil
}

// The purpose keeps what is said about values apart from what is said about data
// keys, and, with the format, about values of a later kind.
const (
	purposeValue   = "weir value 1"
	purposeDataKey = "weir data key 1"
)

func (p Place) associated() []byte {
	return lengthPrefixed(purposeValue, string(p.Tenant), p.Table, p.Row, p.Column)
}

// lengthPrefixed joins the parts so that different parts give different bytes:
// each part begins where the length before it says, whatever is in the parts.
func lengthPrefixed(parts ...string) []byte {
	size := 0
	for _, part := range parts {
		size += 8 + len(part)
	}
	joined := make([]byte, 0, size)
	for _, part := range parts {
		joined = binary.BigEndian.AppendUint64(joined, uint64(len(part)))
		joined = append(joined, part...)
	}
	return joined
}
