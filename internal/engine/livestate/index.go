// SPDX-License-Identifier: Apache-2.0

package livestate

// index finds nodes by a hash. It holds node numbers and nothing else, four bytes
// a slot: what is compared is in the nodes. Open addressing with linear probing,
// between an eighth and three quarters full; a removal moves later entries up, so
// there are no tombstones to wade through after a day of pods that come and go.
//
// The hashes are seeded by the store: who chooses names does not choose slots.
type index struct {
	slots []nodeID // a power of two; 0 is empty
	used  int
	// hash gives the hash of a node that is in the index.
	hash func(nodeID) uint64
}

const smallestIndex = 64

// find gives the first node under the hash that match accepts, or 0.
func (x *index) find(hash uint64, match func(nodeID) bool) nodeID {
	if x.used == 0 {
		return 0
	}
	mask := uint64(len(x.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		id := x.slots[at]
		if id == 0 || match(id) {
			return id
		}
	}
}

func (x *index) insert(id nodeID) {
	if (x.used+1)*4 > len(x.slots)*3 {
		x.resize(max(smallestIndex, 2*len(x.slots)))
	}
	x.place(id)
	x.used++
}

func (x *index) place(id nodeID) {
	mask := uint64(len(x.slots) - 1)
	at := x.hash(id) & mask
	for x.slots[at] != 0 {
		at = (at + 1) & mask
	}
	x.slots[at] = id
}

// remove takes a node out. Its fields must still be what they were at insert.
func (x *index) remove(id nodeID) {
	if x.used == 0 {
		return
	}
	mask := uint64(len(x.slots) - 1)
	at := x.hash(id) & mask
	for x.slots[at] != id {
		if x.slots[at] == 0 {
			return
		}
		at = (at + 1) & mask
	}
	// Close the gap: an entry after it may move into it unless its own place lies
	// between the gap and where it is.
	for next := (at + 1) & mask; x.slots[next] != 0; next = (next + 1) & mask {
		home := x.hash(x.slots[next]) & mask
		if (next-home)&mask >= (next-at)&mask {
			x.slots[at] = x.slots[next]
			at = next
		}
	}
	x.slots[at] = 0
	x.used--
	if len(x.slots) > smallestIndex && x.used*8 < len(x.slots) {
		x.resize(len(x.slots) / 2)
	}
}

func (x *index) resize(size int) {
	old := x.slots
	x.slots = make([]nodeID, size)
	for _, id := range old {
		if id != 0 {
			x.place(id)
		}
	}
}
