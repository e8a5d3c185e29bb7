// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"strings"
	"testing"
)

func BenchmarkSeal4KiB(b *testing.B) {
	db, _ := newSQLite(b)
	s := newSealer(b, newRingFile(b), db)
	p, value := place("alice", "1"), []byte(strings.Repeat("x", 4096))
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Seal(b.Context(), p, value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen4KiB(b *testing.B) {
	db, _ := newSQLite(b)
	s := newSealer(b, newRingFile(b), db)
	p, value := place("alice", "1"), strings.Repeat("x", 4096)
	v := sealed(b, s, p, value)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Open(b.Context(), p, v); err != nil {
			b.Fatal(err)
		}
	}
}

// What the first value of a tenant costs a process: reading and unwrapping its data
// key.
func BenchmarkOpenUncached(b *testing.B) {
	db, _ := newSQLite(b)
	s := newSealer(b, newRingFile(b), db)
	p, value := place("alice", "1"), strings.Repeat("x", 4096)
	v := sealed(b, s, p, value)
	b.ReportAllocs()
	for b.Loop() {
		s.Forget("alice")
		if _, err := s.Open(b.Context(), p, v); err != nil {
			b.Fatal(err)
		}
	}
}
