-- What happened, for tenants (deployment_history) and for operators (audit_log).

-- +goose Up

-- History outlives the deployment it is about, so the application is not a
-- foreign key. It ends with the tenant.
CREATE TABLE deployment_history (
    id                   text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    tenant               text COLLATE "C" NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    application_id       text COLLATE "C" NOT NULL,
    deployment_uid       text COLLATE "C" NOT NULL,
    deployment_namespace text COLLATE "C" NOT NULL,
    deployment_name      text COLLATE "C" NOT NULL,
    trigger              text        NOT NULL,
    revision             text        NOT NULL DEFAULT '',
    result               text        NOT NULL,
    message              text        NOT NULL DEFAULT '',
    resources_changed    bigint      NOT NULL DEFAULT 0 CHECK (resources_changed >= 0),
    started_on           timestamptz NOT NULL,
    finished_on          timestamptz,
    CONSTRAINT deployment_history_time CHECK (finished_on IS NULL OR finished_on >= started_on)
);
CREATE INDEX deployment_history_application ON deployment_history (tenant, application_id, started_on);

-- Who did what. Each entry carries the hash of the one before it. It outlives
-- the tenants it is about, so it refers to nothing.
CREATE TABLE audit_log (
    seq           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            timestamptz NOT NULL,
    actor         text        NOT NULL,
    tenant        text        NOT NULL,
    verb          text        NOT NULL,
    object_kind   text        NOT NULL,
    object_uid    text        NOT NULL,
    before_digest text        NOT NULL DEFAULT '',
    after_digest  text        NOT NULL DEFAULT '',
    result        text        NOT NULL,
    previous_hash bytea       NOT NULL,
    hash          bytea       NOT NULL UNIQUE,
    UNIQUE (previous_hash)
);
CREATE INDEX audit_log_tenant ON audit_log (tenant, seq);

-- +goose StatementBegin
CREATE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit_log is append-only' USING ERRCODE = 'integrity_constraint_violation';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_log_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION audit_log_is_append_only();
