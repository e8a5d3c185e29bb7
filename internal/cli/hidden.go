// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"log/slog"
)

// hidden is a credential. However it is printed, it prints as "[redacted]"; who
// means its bytes converts it.
type hidden []byte

const redacted = "[redacted]"

// Format takes all verbs, so that %d and %x show no more than %v.
func (hidden) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

func (hidden) String() string   { return redacted }
func (hidden) GoString() string { return redacted }

// LogValue is what a log shows.
func (hidden) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText is what JSON and YAML show.
func (hidden) MarshalText() ([]byte, error) { return []byte(redacted), nil }
