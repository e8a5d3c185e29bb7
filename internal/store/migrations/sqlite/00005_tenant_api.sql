-- What the whole tenant API needs beyond the first tables: the parts of an
-- application that its tenant's project is made from, how a sync has gone, and
-- what is known of a service account on another cluster.

-- +goose Up

-- Both stand in spec as well, where nothing can be looked up by them.
ALTER TABLE application ADD COLUMN repo_url TEXT NOT NULL DEFAULT '';
ALTER TABLE application ADD COLUMN namespace TEXT NOT NULL DEFAULT '';
-- A spec that somebody has damaged stays without: taking in its CR again repairs both.
UPDATE application
SET repo_url = COALESCE(json_extract(spec, '$.repoURL'), ''), namespace = COALESCE(json_extract(spec, '$.namespace'), '')
WHERE json_valid(spec);
CREATE INDEX application_project ON application (tenant, repo_url, environment_id, namespace);

-- How it has gone: '' until an engine has begun with it.
ALTER TABLE sync_operation ADD COLUMN phase TEXT NOT NULL DEFAULT '' CHECK (phase IN ('', 'Running', 'Succeeded', 'Failed', 'Error'));
ALTER TABLE sync_operation ADD COLUMN message TEXT NOT NULL DEFAULT '';
ALTER TABLE sync_operation ADD COLUMN synced_revision TEXT NOT NULL DEFAULT '';
ALTER TABLE sync_operation ADD COLUMN health TEXT NOT NULL DEFAULT '';
ALTER TABLE sync_operation ADD COLUMN sync TEXT NOT NULL DEFAULT '';
ALTER TABLE sync_operation ADD COLUMN started_on INTEGER;
ALTER TABLE sync_operation ADD COLUMN finished_on INTEGER CHECK ((finished_on IS NULL) = (phase IN ('', 'Running')));
-- How many syncs of this tenant may run at once.
ALTER TABLE sync_operation ADD COLUMN running_limit INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sync_operation_unfinished ON sync_operation (application_id, created_on, id) WHERE finished_on IS NULL;

-- A digest of what the tenant gave, to see that it was changed. The given
-- credentials themselves are not kept where a service account was made from them.
ALTER TABLE cluster_credentials RENAME COLUMN sealed_token TO sealed_origin;
ALTER TABLE cluster_credentials ADD COLUMN service_account_name TEXT NOT NULL DEFAULT '';
ALTER TABLE cluster_credentials ADD COLUMN token_expires_on INTEGER;
ALTER TABLE cluster_credentials ADD COLUMN version INTEGER NOT NULL DEFAULT 1 CHECK (version > 0);
ALTER TABLE repository_credentials ADD COLUMN version INTEGER NOT NULL DEFAULT 1 CHECK (version > 0);

-- The log knows one more topic. A check cannot be altered here, so the table is
-- made anew; the numbers go on where they were, because cursors point to them.
DROP TRIGGER operation_inserted;
DROP TRIGGER operation_updated;
DROP TRIGGER application_state_inserted;
DROP TRIGGER application_state_updated;
CREATE TABLE change_log_anew (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    topic    TEXT NOT NULL CHECK (topic IN ('operation', 'application_state', 'sync_operation')),
    tenant   TEXT NOT NULL,
    key      TEXT NOT NULL,
    resource_type TEXT NOT NULL DEFAULT '',
    resource TEXT NOT NULL DEFAULT '',
    state    TEXT NOT NULL DEFAULT '',
    instance TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO change_log_anew (seq, at, topic, tenant, key, resource_type, resource, state, instance)
SELECT seq, at, topic, tenant, key, resource_type, resource, state, instance FROM change_log;
DELETE FROM sqlite_sequence WHERE name = 'change_log_anew';
INSERT INTO sqlite_sequence (name, seq) SELECT 'change_log_anew', seq FROM sqlite_sequence WHERE name = 'change_log';
DROP TABLE change_log;
ALTER TABLE change_log_anew RENAME TO change_log;
CREATE INDEX change_log_at ON change_log (at);

-- +goose StatementBegin
CREATE TRIGGER operation_inserted AFTER INSERT ON operation BEGIN
    INSERT INTO change_log (topic, tenant, key, resource_type, resource, state, instance)
    VALUES ('operation', NEW.tenant, NEW.id, NEW.resource_type, NEW.resource_id, NEW.state, NEW.instance_id);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER operation_updated AFTER UPDATE ON operation
WHEN OLD.state IS NOT NEW.state OR OLD.human_readable_state IS NOT NEW.human_readable_state BEGIN
    INSERT INTO change_log (topic, tenant, key, resource_type, resource, state, instance)
    VALUES ('operation', NEW.tenant, NEW.id, NEW.resource_type, NEW.resource_id, NEW.state, NEW.instance_id);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER application_state_inserted AFTER INSERT ON application_state BEGIN
    INSERT INTO change_log (topic, tenant, key) VALUES ('application_state', NEW.tenant, NEW.application_id);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER application_state_updated AFTER UPDATE ON application_state
WHEN OLD.engine_uid IS NOT NEW.engine_uid OR OLD.health IS NOT NEW.health
    OR OLD.health_message IS NOT NEW.health_message OR OLD.sync IS NOT NEW.sync
    OR OLD.revision IS NOT NEW.revision OR OLD.detail IS NOT NEW.detail BEGIN
    INSERT INTO change_log (topic, tenant, key) VALUES ('application_state', NEW.tenant, NEW.application_id);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER sync_operation_updated AFTER UPDATE ON sync_operation
WHEN OLD.phase IS NOT NEW.phase OR OLD.message IS NOT NEW.message OR OLD.synced_revision IS NOT NEW.synced_revision
    OR OLD.health IS NOT NEW.health OR OLD.sync IS NOT NEW.sync
    OR OLD.started_on IS NOT NEW.started_on OR OLD.finished_on IS NOT NEW.finished_on BEGIN
    INSERT INTO change_log (topic, tenant, key, state) VALUES ('sync_operation', NEW.tenant, NEW.id, NEW.phase);
END;
-- +goose StatementEnd
