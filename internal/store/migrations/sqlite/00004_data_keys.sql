-- The keys that credential columns are encrypted with. Each tenant has one data
-- key. It lies here wrapped, that is, encrypted by a key of the key ring, which
-- is never in the database.

-- +goose Up

-- The ring keys that ever wrapped a data key, by their ids alone. A retired one
-- stays here as a tombstone (live is false), and no data key can be wrapped by it
-- again: data_key refers to a live ring key only.
--
-- That is what makes it safe to drop a key from the ring while others work with
-- an older copy of the ring. Retiring is refused as long as a data key refers to
-- the ring key; once it is done, whoever would still wrap by it is refused, and
-- has to read the ring again. The foreign key decides between the two, in whatever
-- order they come.
CREATE TABLE ring_key (
    id   TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    live INTEGER NOT NULL CHECK (live IN (0, 1)),
    UNIQUE (id, live)
) STRICT;

-- The tenant is deliberately no foreign key. The first credential is sealed
-- before the transaction that brings the tenant's row in cluster_user, because
-- what is written there has to be sealed already; and to make that row here would
-- mean making it without the namespace that only the later transaction knows.
-- Nor may the key end in the same moment as the tenant's row: somebody may hold
-- it in memory and be about to write a value sealed by it. So a key is swept once
-- its tenant has no row and nobody has asked for it for much longer than it is
-- kept in memory (used_on). Until then an orphan is a key without anything to
-- open: what it sealed went with the tenant.
CREATE TABLE data_key (
    id            TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    tenant        TEXT NOT NULL CHECK (tenant <> ''),
    ring_key_id   TEXT NOT NULL,
    ring_key_live INTEGER NOT NULL DEFAULT TRUE CHECK (ring_key_live = 1),
    wrapped       BLOB NOT NULL CHECK (length(wrapped) > 0),
    created_on    INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    used_on       INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    UNIQUE (tenant),
    UNIQUE (tenant, id),
    FOREIGN KEY (ring_key_id, ring_key_live) REFERENCES ring_key (id, live)
) STRICT;
CREATE INDEX data_key_ring_key ON data_key (ring_key_id, ring_key_live);
