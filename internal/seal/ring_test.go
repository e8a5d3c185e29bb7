// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
)

func encode(t testing.TB, r *seal.Ring) []byte {
	t.Helper()
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRingIsKeptByEncoding(t *testing.T) {
	ring := must(t)(newRing(t).Rotated())
	ring = must(t)(ring.Rotated())
	again := must(t)(seal.ParseRing(encode(t, ring)))
	same(t, "keys", ring.KeyIDs(), again.KeyIDs())
	same(t, "primary", ring.Primary(), again.Primary())
	if len(ring.KeyIDs()) != 3 || ring.KeyIDs()[0] != ring.Primary() || !ring.Has(ring.KeyIDs()[2]) || ring.Has("00000000") {
		t.Errorf("keys %v of %v", ring.KeyIDs(), ring)
	}
	smaller := must(t)(ring.Without(ring.KeyIDs()[1:]...))
	same(t, "without the older keys", []string{ring.Primary()}, smaller.KeyIDs())
	if _, err := ring.Without(ring.Primary()); err == nil {
		t.Error("the primary was dropped")
	}
}

func TestDamagedRings(t *testing.T) {
	other := func(template func() *keyset.Handle) string {
		var text bytes.Buffer
		if err := insecurecleartextkeyset.Write(template(), keyset.NewJSONWriter(&text)); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	weak, err := keyset.NewHandle(aead.AES128GCMKeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := keyset.NewHandle(aead.AES256GCMNoPrefixKeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	good := string(encode(t, newRing(t)))
	for name, text := range map[string]string{
		"empty":               "",
		"no JSON":             canary,
		"other JSON":          `{"` + canary + `": 1}`,
		"no keys":             `{"primaryKeyId": 1, "key": []}`,
		"no primary":          strings.Replace(good, "primaryKeyId", canary, 1),
		"cut":                 good[:len(good)/2],
		"weaker keys":         other(func() *keyset.Handle { return weak }),
		"keys without an id":  other(func() *keyset.Handle { return raw }),
		"a key of other size": strings.Replace(good, `"value":"`, `"value":"AAAA`, 1),
		"a disabled key":      strings.Replace(good, "ENABLED", "DISABLED", 1),
	} {
		r, err := seal.ParseRing([]byte(text))
		wantError(t, name, err, seal.ErrDamagedRing)
		if r != nil || err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

// ringSecrets gives the ring's key material as it could be found somewhere: bytes,
// hexadecimal, base64 and as Go prints bytes.
func ringSecrets(t testing.TB, r *seal.Ring) []string {
	t.Helper()
	var parsed struct {
		Key []struct {
			KeyData struct{ Value []byte } `json:"keyData"`
		} `json:"key"`
	}
	if err := json.Unmarshal(encode(t, r), &parsed); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, k := range parsed.Key {
		value := k.KeyData.Value
		if len(value) < 32 {
			t.Fatalf("a key of %d bytes", len(value))
		}
		all = append(all, spellings(value[len(value)-32:])...)
		all = append(all, base64.StdEncoding.EncodeToString(value))
	}
	return all
}

func spellings(secret []byte) []string {
	return []string{
		string(secret), hex.EncodeToString(secret), strings.ToUpper(hex.EncodeToString(secret)),
		base64.StdEncoding.EncodeToString(secret), base64.RawURLEncoding.EncodeToString(secret),
		strings.Trim(fmt.Sprintf("%d", secret), "[]"), strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", secret), "[]byte{"), "}"),
	}
}

func TestNothingPrintsKeys(t *testing.T) {
	db, _ := newSQLite(t)
	source := newRingFile(t)
	s := newSealer(t, source, db)
	sealed(t, s, place("alice", "1"), canary)
	ring := load(t, source)
	secrets := append(ringSecrets(t, ring), canary)

	type holder struct {
		Ring   *seal.Ring
		Value  seal.Ring
		hidden seal.Ring
		Sealer *seal.Sealer
		File   *seal.File
	}
	h := holder{ring, *ring, *ring, s, source}
	var printed strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
		for _, value := range []any{ring, *ring, s, h, &h, []*seal.Ring{ring}, map[string]seal.Ring{"r": *ring}, struct{ s *seal.Sealer }{s}} {
			fmt.Fprintf(&printed, verb+"\n", value)
		}
	}
	fmt.Fprintln(&printed, ring.String(), ring.GoString(), s.String(), s.GoString())
	for _, handler := range []slog.Handler{slog.NewTextHandler(&printed, nil), slog.NewJSONHandler(&printed, nil)} {
		slog.New(handler).InfoContext(t.Context(), "printed", "ring", ring, "value", *ring, "sealer", s, "holder", h)
	}
	if text, err := json.Marshal(h); err == nil {
		printed.Write(text)
	}
	for _, secret := range secrets {
		if strings.Contains(printed.String(), secret) {
			t.Fatal("key material was printed")
		}
	}
	if !strings.Contains(printed.String(), "key ring (primary "+ring.Primary()) {
		t.Error("what is printed does not name the key")
	}
	if fmt.Sprint(seal.Ring{}) == "" || fmt.Sprint((*seal.Sealer)(nil)) == "" {
		t.Error("the empty ones print nothing")
	}
}

// What an earlier release has sealed, this one opens: the ring's encoding, the wrapped
// key and the sealed text are what databases and backups are full of.
func TestEarlierFormatOpens(t *testing.T) {
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join("testdata", "format1", name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	path := filepath.Join(t.TempDir(), "ring.json")
	if err := os.WriteFile(path, read("ring.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	var row struct {
		Key    store.DataKey
		Place  seal.Place
		Sealed seal.Sealed
	}
	if err := json.Unmarshal(read("row.json"), &row); err != nil {
		t.Fatal(err)
	}
	db, _ := newSQLite(t)
	if _, err := db.AddDataKey(t.Context(), row.Key); err != nil {
		t.Fatal(err)
	}
	opens(t, newSealer(t, seal.NewFile(path), db), row.Place, row.Sealed, "sealed by format 1")
}
