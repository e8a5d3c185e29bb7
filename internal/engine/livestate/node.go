// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"encoding/hex"
	"hash/maphash"
	"strconv"
	"unique"
)

// nodeID is the number of a node; 0 is none.
type nodeID uint32

// edgeID is the number of an edge; 0 is none.
type edgeID uint32

// uid is a UID: the bytes of a UUID, or a hash of what is not one.
type uid [16]byte

// node is an object, or a ghost: an owner that is known by its UID only.
type node struct {
	uid  uid
	name string
	ns   unique.Handle[string]
	kept *kept
	// version is the resource version, or a hash of one that is not a number.
	version uint64
	// children is the first edge from here, owners the first one to here.
	children, owners edgeID
	// scope is the number of the scope it came through; 0 marks a ghost.
	scope uint32
	// list is the number of the last list or event of its scope that named it.
	list uint32
}

// kept is a label or an annotation, and those after it, in the order of the
// settings. Equal values are one string in memory.
type kept struct {
	value unique.Handle[string]
	next  *kept
	// key is the place in the settings; annotations come after all labels.
	key uint16
}

// edge joins an owner and a child. It is in two lists: the owner's, in both
// directions, as an owner can have many children that come and go, and the
// child's, in one.
type edge struct {
	owner, child           nodeID
	nextChild, beforeChild edgeID
	nextOwner              edgeID
}

// slab holds values under numbers from 1 on, in chunks that never move, so that
// growth neither copies nor leaves room unused; numbers are used again.
type slab[T any, N ~uint32] struct {
	chunks []*[chunkSize]T
	free   []N
	last   N
}

const chunkSize = 256

func (s *slab[T, N]) at(n N) *T { return &s.chunks[n/chunkSize][n%chunkSize] }

func (s *slab[T, N]) take() N {
	if last := len(s.free) - 1; last >= 0 {
		n := s.free[last]
		s.free = s.free[:last]
		return n
	}
	s.last++
	if int(s.last/chunkSize) == len(s.chunks) {
		s.chunks = append(s.chunks, new([chunkSize]T))
	}
	return s.last
}

func (s *slab[T, N]) release(n N) {
	var zero T
	*s.at(n) = zero
	s.free = append(s.free, n)
}

// oddText is kept beside nodes whose UID is not a UUID or whose resource version
// is not a number: no API server of Kubernetes has them, but others may.
type oddText struct{ uid, version string }

// parseUID takes the usual form of a UUID and nothing else, so that the text can
// be made of the bytes again.
func parseUID(text string) (u uid, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return u, false
	}
	at := 0
	for i := 0; i < 36; {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			i++
			continue
		}
		hi, lo := nibble(text[i]), nibble(text[i+1])
		if hi > 15 || lo > 15 {
			return uid{}, false
		}
		u[at] = hi<<4 | lo
		at++
		i += 2
	}
	return u, true
}

func nibble(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// String is the text of a UUID.
func (u uid) String() string {
	var b [36]byte
	hex.Encode(b[:8], u[:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:], u[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// uidOf gives a UID for any text. The second result is false if the text cannot
// be made of it again. 128 bits of a seeded hash do not meet by chance.
func (s *store) uidOf(text string) (uid, bool) {
	u, ok := parseUID(text)
	if !ok {
		a, b := maphash.String(s.seed, text), maphash.String(s.seed2, text)
		for i := range 8 {
			u[i], u[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
		}
	}
	return u, ok
}

const notANumber = 1 << 63

func (s *store) versionOf(text string) (uint64, bool) {
	v, err := strconv.ParseUint(text, 10, 63)
	if err != nil || (len(text) > 1 && text[0] == '0') {
		return maphash.String(s.seed, text) | notANumber, false
	}
	return v, true
}
