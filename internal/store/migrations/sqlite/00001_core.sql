-- The tables between the tenants' objects and the engines.
--
-- The same tables as on PostgreSQL. STRICT holds columns to their types; times are
-- microseconds since 1970 as integers, truth values are 0 and 1, and text sorts
-- by bytes, which is SQLite's own way.
--
-- Every row that a tenant owns carries the tenant, and a foreign key between two
-- such rows is composite with it: a row cannot refer to another tenant's.
--
-- ON DELETE CASCADE stands where the parent's end is the child's end. The other
-- foreign keys refuse at the end of the statement (NO ACTION, not RESTRICT), so
-- that removing a tenant, which cascades along several paths, is not stopped by
-- the order in which the paths are walked.
--
-- There is no way down: a schema goes back by restoring a backup.

-- +goose Up

CREATE TABLE cluster_user (
    id         TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    namespace  TEXT NOT NULL,
    created_on INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;

-- The owner of what belongs to the service itself.
INSERT INTO cluster_user (id, namespace) VALUES ('weir-internal', '');

CREATE TABLE cluster_credentials (
    id                             TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    tenant                         TEXT NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    host                           TEXT NOT NULL,
    sealed_kubeconfig              BLOB,
    sealed_token                   BLOB,
    key_id                         TEXT NOT NULL DEFAULT '',
    service_account_namespace      TEXT NOT NULL DEFAULT '',
    allow_insecure_skip_tls_verify INTEGER NOT NULL DEFAULT FALSE CHECK (allow_insecure_skip_tls_verify IN (0, 1)),
    namespaces                     TEXT NOT NULL DEFAULT '',
    cluster_resources              INTEGER NOT NULL DEFAULT FALSE CHECK (cluster_resources IN (0, 1)),
    created_on                     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    UNIQUE (tenant, id),
    CONSTRAINT cluster_credentials_key CHECK (key_id <> '' OR (sealed_kubeconfig IS NULL AND sealed_token IS NULL))
) STRICT;

-- An engine cluster's credentials are the service's own: the check and the
-- composite key together keep a tenant's credentials out.
CREATE TABLE gitops_engine_cluster (
    id             TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    tenant         TEXT NOT NULL DEFAULT 'weir-internal' CHECK (tenant = 'weir-internal')
                   REFERENCES cluster_user (id),
    credentials_id TEXT,
    created_on     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    FOREIGN KEY (tenant, credentials_id) REFERENCES cluster_credentials (tenant, id)
) STRICT;

CREATE TABLE gitops_engine_instance (
    id         TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    cluster_id TEXT NOT NULL REFERENCES gitops_engine_cluster (id) ON DELETE CASCADE,
    namespace  TEXT NOT NULL CHECK (namespace <> ''),
    kind       TEXT NOT NULL CHECK (kind IN ('argocd', 'builtin', 'none')),
    ready      INTEGER NOT NULL DEFAULT FALSE CHECK (ready IN (0, 1)),
    created_on INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;

-- The local environment is the tenant's own namespace and has its UID for an id.
CREATE TABLE managed_environment (
    id              TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    tenant          TEXT NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    name            TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('local', 'remote')),
    credentials_id  TEXT,
    allow_automated INTEGER NOT NULL DEFAULT TRUE CHECK (allow_automated IN (0, 1)),
    created_on      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    UNIQUE (tenant, id),
    FOREIGN KEY (tenant, credentials_id) REFERENCES cluster_credentials (tenant, id),
    CONSTRAINT managed_environment_local CHECK (kind <> 'local' OR (id = tenant AND credentials_id IS NULL))
) STRICT;

-- Which engine instance deploys to an environment. One instance for each
-- environment of a tenant: of two placements that race, one finds its instance
-- refused and looks again. The wider unique key is what applications refer to.
-- Moving an environment is one update that takes its applications along.
CREATE TABLE cluster_access (
    tenant         TEXT NOT NULL,
    environment_id TEXT NOT NULL,
    instance_id    TEXT NOT NULL REFERENCES gitops_engine_instance (id),
    created_on     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    PRIMARY KEY (tenant, environment_id),
    UNIQUE (tenant, environment_id, instance_id),
    FOREIGN KEY (tenant, environment_id) REFERENCES managed_environment (tenant, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX cluster_access_instance ON cluster_access (instance_id, tenant);

CREATE TABLE application (
    id             TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    tenant         TEXT NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    name           TEXT NOT NULL,
    spec           TEXT NOT NULL,
    instance_id    TEXT NOT NULL,
    environment_id TEXT NOT NULL,
    generation     INTEGER NOT NULL CHECK (generation >= 0),
    version        INTEGER NOT NULL DEFAULT 1 CHECK (version > 0),
    created_on     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    updated_on     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    UNIQUE (tenant, id),
    FOREIGN KEY (tenant, environment_id, instance_id)
        REFERENCES cluster_access (tenant, environment_id, instance_id) ON UPDATE CASCADE
) STRICT;
CREATE INDEX application_instance ON application (instance_id, id);
CREATE INDEX application_environment ON application (tenant, environment_id, instance_id);

CREATE TABLE application_state (
    application_id TEXT NOT NULL PRIMARY KEY,
    tenant         TEXT NOT NULL,
    engine_uid     TEXT NOT NULL,
    sequence       INTEGER NOT NULL,
    health         TEXT NOT NULL DEFAULT '',
    health_message TEXT NOT NULL DEFAULT '',
    sync           TEXT NOT NULL DEFAULT '',
    revision       TEXT NOT NULL DEFAULT '',
    detail         TEXT NOT NULL DEFAULT '{}',
    updated_on     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    FOREIGN KEY (tenant, application_id) REFERENCES application (tenant, id) ON DELETE CASCADE
) STRICT;

-- The application's id is the UID of the CR, so this is the CR's name at the
-- time it was taken in. Names find, they do not identify: not unique.
CREATE TABLE deployment_to_application_mapping (
    application_id TEXT NOT NULL PRIMARY KEY,
    tenant         TEXT NOT NULL,
    namespace      TEXT NOT NULL,
    name           TEXT NOT NULL,
    FOREIGN KEY (tenant, application_id) REFERENCES application (tenant, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX deployment_to_application_mapping_name ON deployment_to_application_mapping (namespace, name);

CREATE TABLE kubernetes_to_db_resource_mapping (
    kubernetes_resource_type TEXT NOT NULL CHECK (kubernetes_resource_type IN ('Namespace')),
    kubernetes_resource_uid  TEXT NOT NULL CHECK (kubernetes_resource_uid <> ''),
    db_relation_type         TEXT NOT NULL
        CHECK (db_relation_type IN ('ManagedEnvironment', 'GitopsEngineCluster', 'GitopsEngineInstance')),
    db_relation_key          TEXT NOT NULL CHECK (db_relation_key <> ''),
    tenant                   TEXT NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    PRIMARY KEY (kubernetes_resource_type, kubernetes_resource_uid, db_relation_type, db_relation_key),
    UNIQUE (db_relation_type, db_relation_key)
) STRICT;

CREATE TABLE api_cr_to_database_mapping (
    cr_type          TEXT NOT NULL CHECK (cr_type IN (
        'GitOpsDeployment', 'GitOpsDeploymentSyncRun',
        'GitOpsDeploymentManagedEnvironment', 'GitOpsDeploymentRepositoryCredential')),
    cr_uid           TEXT NOT NULL CHECK (cr_uid <> ''),
    cr_namespace     TEXT NOT NULL,
    cr_name          TEXT NOT NULL,
    tenant           TEXT NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    db_relation_type TEXT NOT NULL
        CHECK (db_relation_type IN ('Application', 'SyncOperation', 'ManagedEnvironment', 'RepositoryCredential')),
    db_relation_key  TEXT NOT NULL CHECK (db_relation_key <> ''),
    PRIMARY KEY (cr_type, cr_uid, db_relation_type, db_relation_key)
) STRICT;
CREATE INDEX api_cr_to_database_mapping_name ON api_cr_to_database_mapping (cr_type, cr_namespace, cr_name);
CREATE INDEX api_cr_to_database_mapping_row ON api_cr_to_database_mapping (db_relation_type, db_relation_key);

CREATE TABLE sync_operation (
    id              TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    tenant          TEXT NOT NULL,
    application_id  TEXT NOT NULL,
    deployment_name TEXT NOT NULL,
    revision        TEXT NOT NULL DEFAULT '',
    desired_state   TEXT NOT NULL CHECK (desired_state IN ('Running', 'Terminated')),
    created_on      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    UNIQUE (tenant, id),
    FOREIGN KEY (tenant, application_id) REFERENCES application (tenant, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX sync_operation_application ON sync_operation (tenant, application_id);

CREATE TABLE repository_credentials (
    id              TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    tenant          TEXT NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    instance_id     TEXT NOT NULL REFERENCES gitops_engine_instance (id),
    repository_url  TEXT NOT NULL CHECK (repository_url <> ''),
    sealed_username BLOB,
    sealed_password BLOB,
    sealed_ssh_key  BLOB,
    key_id          TEXT NOT NULL DEFAULT '',
    created_on      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    UNIQUE (tenant, id),
    CONSTRAINT repository_credentials_key CHECK (key_id <> ''
        OR (sealed_username IS NULL AND sealed_password IS NULL AND sealed_ssh_key IS NULL))
) STRICT;

CREATE TABLE app_project_repository (
    id                        TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    tenant                    TEXT NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    repository_credentials_id TEXT,
    repository_url            TEXT NOT NULL CHECK (repository_url <> ''),
    created_on                INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    UNIQUE (tenant, repository_url),
    FOREIGN KEY (tenant, repository_credentials_id) REFERENCES repository_credentials (tenant, id)
) STRICT;

CREATE TABLE app_project_managed_environment (
    id                     TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    tenant                 TEXT NOT NULL,
    managed_environment_id TEXT NOT NULL,
    created_on             INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    UNIQUE (tenant, managed_environment_id),
    FOREIGN KEY (tenant, managed_environment_id) REFERENCES managed_environment (tenant, id) ON DELETE CASCADE
) STRICT;

CREATE TABLE application_owner (
    application_id TEXT NOT NULL PRIMARY KEY,
    tenant         TEXT NOT NULL,
    created_on     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    FOREIGN KEY (tenant, application_id) REFERENCES application (tenant, id) ON DELETE CASCADE
) STRICT;

-- The outbox. An operation says where to look, not what to do, and it has to
-- outlive both its resource and its tenant: taking down what a removed tenant
-- had on an engine is an operation, too. So neither is a foreign key. The
-- instance is one, because without it there is nobody left to carry it out.
CREATE TABLE operation (
    id                   TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    tenant               TEXT NOT NULL CHECK (tenant <> ''),
    instance_id          TEXT NOT NULL REFERENCES gitops_engine_instance (id) ON DELETE CASCADE,
    resource_type        TEXT NOT NULL CHECK (resource_type IN (
        'Application', 'ManagedEnvironment', 'RepositoryCredential', 'SyncOperation', 'GitOpsEngineInstance')),
    resource_id          TEXT NOT NULL CHECK (resource_id <> ''),
    state                TEXT NOT NULL DEFAULT 'Waiting'
        CHECK (state IN ('Waiting', 'In_Progress', 'Completed', 'Failed')),
    human_readable_state TEXT NOT NULL DEFAULT '',
    version              INTEGER NOT NULL DEFAULT 1 CHECK (version > 0),
    created_on           INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    last_state_update    INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    gc_expiration        INTEGER
) STRICT;
-- At most one operation waits for a resource on an instance; a further change
-- reuses it. The instance is part of the key, because a resource that moves
-- needs one operation where it was and another where it goes.
CREATE UNIQUE INDEX operation_waiting ON operation (instance_id, resource_type, resource_id) WHERE state = 'Waiting';
CREATE INDEX operation_unfinished ON operation (id) WHERE state IN ('Waiting', 'In_Progress');
CREATE INDEX operation_final ON operation (last_state_update) WHERE state IN ('Completed', 'Failed');
CREATE INDEX operation_resource ON operation (resource_type, resource_id, id);
