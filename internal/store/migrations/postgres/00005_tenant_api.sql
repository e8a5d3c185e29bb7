-- What the whole tenant API needs beyond the first tables: the parts of an
-- application that its tenant's project is made from, how a sync has gone, and
-- what is known of a service account on another cluster.

-- +goose Up

-- Both stand in spec as well, where nothing can be looked up by them.
ALTER TABLE application ADD COLUMN repo_url text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE application ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT '';
-- A spec that somebody has damaged stays without: taking in its CR again repairs both.
-- +goose StatementBegin
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT id, spec FROM application LOOP
        BEGIN
            UPDATE application
            SET repo_url = COALESCE(one.spec::json ->> 'repoURL', ''), namespace = COALESCE(one.spec::json ->> 'namespace', '')
            WHERE id = one.id;
        EXCEPTION WHEN data_exception THEN
            NULL;
        END;
    END LOOP;
END
$$;
-- +goose StatementEnd
CREATE INDEX application_project ON application (tenant, repo_url, environment_id, namespace);

ALTER TABLE sync_operation
    -- How it has gone: '' until an engine has begun with it.
    ADD COLUMN phase text NOT NULL DEFAULT '' CHECK (phase IN ('', 'Running', 'Succeeded', 'Failed', 'Error')),
    ADD COLUMN message text NOT NULL DEFAULT '',
    ADD COLUMN synced_revision text NOT NULL DEFAULT '',
    ADD COLUMN health text NOT NULL DEFAULT '',
    ADD COLUMN sync text NOT NULL DEFAULT '',
    ADD COLUMN started_on timestamptz,
    ADD COLUMN finished_on timestamptz,
    -- How many syncs of this tenant may run at once.
    ADD COLUMN running_limit bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT sync_operation_end CHECK ((finished_on IS NULL) = (phase IN ('', 'Running')));
CREATE INDEX sync_operation_unfinished ON sync_operation (application_id, created_on, id) WHERE finished_on IS NULL;

-- A digest of what the tenant gave, to see that it was changed. The given
-- credentials themselves are not kept where a service account was made from them.
ALTER TABLE cluster_credentials RENAME COLUMN sealed_token TO sealed_origin;
ALTER TABLE cluster_credentials
    ADD COLUMN service_account_name text NOT NULL DEFAULT '',
    ADD COLUMN token_expires_on timestamptz,
    ADD COLUMN version bigint NOT NULL DEFAULT 1 CHECK (version > 0);
ALTER TABLE repository_credentials
    ADD COLUMN version bigint NOT NULL DEFAULT 1 CHECK (version > 0);

ALTER TABLE change_log DROP CONSTRAINT change_log_topic_check;
ALTER TABLE change_log ADD CONSTRAINT change_log_topic_check CHECK (topic IN ('operation', 'application_state', 'sync_operation'));

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION change_log_append() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    entry change_log;
BEGIN
    IF TG_TABLE_NAME = 'operation' THEN
        INSERT INTO change_log (topic, tenant, key, resource_type, resource, state, instance)
        VALUES ('operation', NEW.tenant, NEW.id, NEW.resource_type, NEW.resource_id, NEW.state, NEW.instance_id)
        RETURNING * INTO entry;
    ELSIF TG_TABLE_NAME = 'sync_operation' THEN
        INSERT INTO change_log (topic, tenant, key, state)
        VALUES ('sync_operation', NEW.tenant, NEW.id, NEW.phase)
        RETURNING * INTO entry;
    ELSE
        INSERT INTO change_log (topic, tenant, key)
        VALUES ('application_state', NEW.tenant, NEW.application_id)
        RETURNING * INTO entry;
    END IF;
    PERFORM pg_notify('weir_change', json_build_object(
        'seq', entry.seq, 'topic', entry.topic, 'tenant', entry.tenant, 'key', entry.key,
        'type', entry.resource_type, 'resource', entry.resource, 'state', entry.state, 'instance', entry.instance)::text);
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER sync_operation_updated AFTER UPDATE ON sync_operation
    FOR EACH ROW
    WHEN ((OLD.phase, OLD.message, OLD.synced_revision, OLD.health, OLD.sync, OLD.started_on, OLD.finished_on)
        IS DISTINCT FROM (NEW.phase, NEW.message, NEW.synced_revision, NEW.health, NEW.sync, NEW.started_on, NEW.finished_on))
    EXECUTE FUNCTION change_log_append();
