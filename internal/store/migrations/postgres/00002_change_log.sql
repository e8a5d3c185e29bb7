-- What package notify follows. Triggers on the rows write the log, so a row that
-- an operator edits by hand notifies like any other.
--
-- Order. For one key, seq order is commit order: an AFTER trigger runs when its
-- transaction has written the row and so holds the row's lock, or the claim on
-- its unique key, until it ends. The next transaction to write that row gets
-- past the lock, and to its own nextval, only after the first has committed.
-- Across keys there is no such order: a transaction that took its number early
-- may commit late. That is why a cursor is a transaction id, not a seq; the
-- argument stands beside the statement that reads the log.

-- +goose Up

CREATE TABLE change_log (
    seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid      xid8        NOT NULL DEFAULT pg_current_xact_id(),
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    topic    text        NOT NULL CHECK (topic IN ('operation', 'application_state')),
    tenant   text        NOT NULL,
    key      text        NOT NULL,
    resource_type text   NOT NULL DEFAULT '',
    resource text        NOT NULL DEFAULT '',
    state    text        NOT NULL DEFAULT '',
    instance text        NOT NULL DEFAULT ''
);
CREATE INDEX change_log_xid ON change_log (xid);
CREATE INDEX change_log_at ON change_log (at);

-- Cursors below the horizon have lost events to trimming.
CREATE TABLE change_log_horizon (
    one     boolean PRIMARY KEY DEFAULT TRUE CHECK (one),
    horizon bigint  NOT NULL
);
INSERT INTO change_log_horizon (horizon) VALUES (0);

-- +goose StatementBegin
CREATE FUNCTION change_log_append() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    entry change_log;
BEGIN
    IF TG_TABLE_NAME = 'operation' THEN
        INSERT INTO change_log (topic, tenant, key, resource_type, resource, state, instance)
        VALUES ('operation', NEW.tenant, NEW.id, NEW.resource_type, NEW.resource_id, NEW.state, NEW.instance_id)
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

CREATE TRIGGER operation_inserted AFTER INSERT ON operation
    FOR EACH ROW EXECUTE FUNCTION change_log_append();

-- Not when only the version grows: whoever works on the operation learns that
-- when finishing it.
CREATE TRIGGER operation_updated AFTER UPDATE ON operation
    FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state OR OLD.human_readable_state IS DISTINCT FROM NEW.human_readable_state)
    EXECUTE FUNCTION change_log_append();

CREATE TRIGGER application_state_inserted AFTER INSERT ON application_state
    FOR EACH ROW EXECUTE FUNCTION change_log_append();

-- Not when only the sequence grows: an engine touches its objects more often
-- than it says something new.
CREATE TRIGGER application_state_updated AFTER UPDATE ON application_state
    FOR EACH ROW
    WHEN ((OLD.engine_uid, OLD.health, OLD.health_message, OLD.sync, OLD.revision, OLD.detail)
        IS DISTINCT FROM (NEW.engine_uid, NEW.health, NEW.health_message, NEW.sync, NEW.revision, NEW.detail))
    EXECUTE FUNCTION change_log_append();
