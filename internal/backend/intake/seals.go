// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/seal"
)

// Sealer encrypts what goes into the database, and opens it to see whether it has
// changed.
type Sealer interface {
	Seal(ctx context.Context, p seal.Place, plaintext []byte) (seal.Sealed, error)
	Open(ctx context.Context, p seal.Place, v seal.Sealed) ([]byte, error)
}

// row is a row whose columns are sealed.
type sealedRow struct {
	tenant domain.TenantID
	table  string
	id     string
}

func (r sealedRow) at(column string) seal.Place {
	return seal.Place{Tenant: r.tenant, Table: r.table, Row: r.id, Column: column}
}

// sealColumns seals several columns of one row. All have the same key, whose id
// the row keeps once. A nil value stays nil.
func sealColumns(ctx context.Context, s Sealer, row sealedRow, columns map[string][]byte) (sealed map[string][]byte, keyID string, err error) {
	sealed = make(map[string][]byte, len(columns))
	for column, text := range columns {
		if text == nil {
			continue
		}
		v, err := s.Seal(ctx, row.at(column), text)
		if err != nil {
			return nil, "", fmt.Errorf("seal %s.%s: %w", row.table, column, err)
		}
		if keyID != "" && v.KeyID != keyID {
			// The tenant's data key was replaced in between.
			return nil, "", fmt.Errorf("seal %s.%s: %w", row.table, column, domain.ErrConflict)
		}
		sealed[column], keyID = v.Text, v.KeyID
	}
	return sealed, keyID, nil
}

// digest is what two things are compared by that should not be kept.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:", len(part))
		_, _ = h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
