// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"crypto/rand"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/weir-gitops/weir/internal/domain"
)

const dataKeySize = 32

// plainKey is an unwrapped data key on its way to becoming a dataKey. It does not
// leave the function that made it.
type plainKey struct {
	id     string
	tenant domain.TenantID
	bytes  []byte
}

func newPlainKey(tenant domain.TenantID) plainKey {
	k := plainKey{id: uuid.Must(uuid.NewV7()).String(), tenant: tenant, bytes: make([]byte, dataKeySize)}
	_, _ = rand.Read(k.bytes) // It never fails: it ends the process instead.
	return k
}

func (k plainKey) associated() []byte {
	return lengthPrefixed(purposeDataKey, string(k.tenant), k.id)
}

// forget overwrites the bytes. What the cipher has copied stays, as long as the
// cipher does.
func (k plainKey) forget() { clear(k.bytes) }

// Format keeps the bytes out of whatever prints it.
func (k plainKey) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "data key "+k.id) }

// dataKey is a data key ready for use.
//
// Nonces are random, 96 bits. A key may seal some four thousand million values
// before two nonces are likely enough to be the same to be worth a thought; a
// tenant's credentials are a few hundred, written when they change.
type dataKey struct {
	id   string
	aead tink.AEAD
}

func (k plainKey) ready() (dataKey, error) {
	cipher, err := subtle.NewAESGCM(k.bytes)
	if err != nil {
		return dataKey{}, fmt.Errorf("use data key %s: %w", k.id, err)
	}
	return dataKey{id: k.id, aead: cipher}, nil
}

// format begins every sealed text, so that another one can come later.
const format = 1

func (k dataKey) seal(p Place, plaintext []byte) (Sealed, error) {
	text, err := k.aead.Encrypt(plaintext, p.associated())
	if err != nil {
		return Sealed{}, fmt.Errorf("seal %s.%s of row %s: %w", p.Table, p.Column, p.Row, err)
	}
	return Sealed{KeyID: k.id, Text: append([]byte{format}, text...)}, nil
}

func (k dataKey) open(p Place, text []byte) ([]byte, error) {
	if len(text) == 0 || text[0] != format {
		return nil, notAuthentic(p)
	}
	plaintext, err := k.aead.Decrypt(text[1:], p.associated())
	if err != nil {
		return nil, notAuthentic(p)
	}
	return plaintext, nil
}

func notAuthentic(p Place) error {
	return fmt.Errorf("%s.%s of row %s of tenant %s: %w", p.Table, p.Column, p.Row, p.Tenant, ErrNotAuthentic)
}
