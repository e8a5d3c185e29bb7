// SPDX-License-Identifier: Apache-2.0

// Package seal encrypts credentials before they reach the database, so that a
// stolen dump of it is worth nothing.
//
// # Two layers of keys
//
//	key ring (a file or a Kubernetes Secret)      database
//	┌──────────────────────────┐        ┌─────────────────────────────────┐
//	│ primary   1c3f90aa       │ wraps  │ data_key: tenant, wrapped key   │  one for each tenant
//	│ older     77b0e412       │ ─────▶ │                                 │
//	└──────────────────────────┘        └──────────────┬──────────────────┘
//	                                            encrypts ▼
//	                                    sealed_password, sealed_origin, …
//
// The ring is a Tink keyset of AES-256-GCM keys. It wraps data keys, and nothing
// else. A tenant's data key, 32 random bytes, encrypts that tenant's values with
// AES-256-GCM under a random nonce. Neither the ring nor an unwrapped data key is
// ever written to the database; without a ring nothing is sealed or opened, and
// there is no way to store a credential in plain text instead.
//
// # A value belongs to its place
//
// The tenant, table, row and column are authenticated with each value, each with
// its length before it, so that no two places read the same. A sealed text that
// was moved to another place, by a bug or by somebody who can write to the
// database but not read the ring, does not open there. A wrapped data key is bound
// to its tenant and its id in the same way. What this does not hide is the length
// of a value, and it does not notice that an older value of the same place was put
// back.
//
// # Rotation without a restart
//
// Rotate adds a new primary to the ring in its Source and then wraps each data key
// anew. Values stay as they are, so the work is one small row for each tenant. Any
// process may meet a data key that is wrapped by a ring key it does not know yet;
// it reads the ring again and goes on. The ring is always written before the first
// data key that needs it, so one reading is enough, unless yet another rotation
// has gone past meanwhile.
//
// The opposite is what dropping old ring keys has to fear: a process with an older
// copy of the ring could wrap a new tenant's data key by a key that is about to be
// dropped. The database decides that race: a ring key is retired there first,
// which is refused while any data key needs it, and after which no data key
// can be wrapped by it. Only then is it dropped from the ring. A run that is
// interrupted anywhere leaves a ring that opens everything, and the next run goes
// on from there.
//
// Rotation replaces ring keys, not data keys. Whoever had both an old ring and a
// dump of the database has had the credentials; those are to be replaced where
// they come from.
//
// One ring belongs to one database: dropping asks that database alone.
//
// # What is kept in memory
//
// A Sealer keeps the ring and a bounded number of unwrapped data keys. It asks the
// database for a tenant's data key again after an hour, which is also what tells
// the database that the key of a tenant without a row is still in use (see
// SweepAfter). No type here shows key material when it is printed or logged.
package seal
