-- What happened, for tenants (deployment_history) and for operators (audit_log).

-- +goose Up

-- History outlives the deployment it is about, so the application is not a
-- foreign key. It ends with the tenant.
CREATE TABLE deployment_history (
    id                   TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    tenant               TEXT NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    application_id       TEXT NOT NULL,
    deployment_uid       TEXT NOT NULL,
    deployment_namespace TEXT NOT NULL,
    deployment_name      TEXT NOT NULL,
    trigger              TEXT NOT NULL,
    revision             TEXT NOT NULL DEFAULT '',
    result               TEXT NOT NULL,
    message              TEXT NOT NULL DEFAULT '',
    resources_changed    INTEGER NOT NULL DEFAULT 0 CHECK (resources_changed >= 0),
    started_on           INTEGER NOT NULL,
    finished_on          INTEGER,
    CONSTRAINT deployment_history_time CHECK (finished_on IS NULL OR finished_on >= started_on)
) STRICT;
CREATE INDEX deployment_history_application ON deployment_history (tenant, application_id, started_on);

-- Who did what. Each entry carries the hash of the one before it. It outlives
-- the tenants it is about, so it refers to nothing.
CREATE TABLE audit_log (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    at            INTEGER NOT NULL,
    actor         TEXT NOT NULL,
    tenant        TEXT NOT NULL,
    verb          TEXT NOT NULL,
    object_kind   TEXT NOT NULL,
    object_uid    TEXT NOT NULL,
    before_digest TEXT NOT NULL DEFAULT '',
    after_digest  TEXT NOT NULL DEFAULT '',
    result        TEXT NOT NULL,
    previous_hash BLOB NOT NULL,
    hash          BLOB NOT NULL UNIQUE,
    UNIQUE (previous_hash)
) STRICT;
CREATE INDEX audit_log_tenant ON audit_log (tenant, seq);

-- +goose StatementBegin
CREATE TRIGGER audit_log_not_updated BEFORE UPDATE ON audit_log BEGIN
    SELECT RAISE(ABORT, 'audit_log is append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_log_not_deleted BEFORE DELETE ON audit_log BEGIN
    SELECT RAISE(ABORT, 'audit_log is append-only');
END;
-- +goose StatementEnd
