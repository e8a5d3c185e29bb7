-- What package notify follows. Triggers on the rows write the log, so a row that
-- an operator edits by hand is in it like any other.
--
-- There is one writer at a time, from the begin of its transaction to the end,
-- so seq order is commit order for all keys, and a seq is all that a cursor needs.
-- AUTOINCREMENT keeps numbers from being used again after trimming.

-- +goose Up

CREATE TABLE change_log (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    topic    TEXT NOT NULL CHECK (topic IN ('operation', 'application_state')),
    tenant   TEXT NOT NULL,
    key      TEXT NOT NULL,
    resource_type TEXT NOT NULL DEFAULT '',
    resource TEXT NOT NULL DEFAULT '',
    state    TEXT NOT NULL DEFAULT '',
    instance TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX change_log_at ON change_log (at);

-- Cursors below the horizon have lost events to trimming.
CREATE TABLE change_log_horizon (
    one     INT NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    horizon INTEGER NOT NULL
) STRICT;
INSERT INTO change_log_horizon (horizon) VALUES (0);

-- +goose StatementBegin
CREATE TRIGGER operation_inserted AFTER INSERT ON operation BEGIN
    INSERT INTO change_log (topic, tenant, key, resource_type, resource, state, instance)
    VALUES ('operation', NEW.tenant, NEW.id, NEW.resource_type, NEW.resource_id, NEW.state, NEW.instance_id);
END;
-- +goose StatementEnd

-- Not when only the version grows: whoever works on the operation learns that
-- when finishing it.
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

-- Not when only the sequence grows: an engine touches its objects more often
-- than it says something new.
-- +goose StatementBegin
CREATE TRIGGER application_state_updated AFTER UPDATE ON application_state
WHEN OLD.engine_uid IS NOT NEW.engine_uid OR OLD.health IS NOT NEW.health
    OR OLD.health_message IS NOT NEW.health_message OR OLD.sync IS NOT NEW.sync
    OR OLD.revision IS NOT NEW.revision OR OLD.detail IS NOT NEW.detail BEGIN
    INSERT INTO change_log (topic, tenant, key) VALUES ('application_state', NEW.tenant, NEW.application_id);
END;
-- +goose StatementEnd
