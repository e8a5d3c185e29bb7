-- The tables between the tenants' objects and the engines.
--
-- Ids are UIDs of Kubernetes objects or UUIDs of version 7. They sort by bytes
-- (COLLATE "C") so that a page of ids means the same to the database and to Go,
-- whatever locale the database was created with.
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
    id         text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    namespace  text        NOT NULL,
    created_on timestamptz NOT NULL DEFAULT now()
);

-- The owner of what belongs to the service itself.
INSERT INTO cluster_user (id, namespace) VALUES ('weir-internal', '');

CREATE TABLE cluster_credentials (
    id                             text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    tenant                         text COLLATE "C" NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    host                           text        NOT NULL,
    sealed_kubeconfig              bytea,
    sealed_token                   bytea,
    key_id                         text        NOT NULL DEFAULT '',
    service_account_namespace      text        NOT NULL DEFAULT '',
    allow_insecure_skip_tls_verify boolean     NOT NULL DEFAULT FALSE,
    namespaces                     text        NOT NULL DEFAULT '',
    cluster_resources              boolean     NOT NULL DEFAULT FALSE,
    created_on                     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant, id),
    CONSTRAINT cluster_credentials_key CHECK (key_id <> '' OR (sealed_kubeconfig IS NULL AND sealed_token IS NULL))
);

-- An engine cluster's credentials are the service's own: the check and the
-- composite key together keep a tenant's credentials out.
CREATE TABLE gitops_engine_cluster (
    id             text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    tenant         text COLLATE "C" NOT NULL DEFAULT 'weir-internal' CHECK (tenant = 'weir-internal')
                   REFERENCES cluster_user (id),
    credentials_id text COLLATE "C",
    created_on     timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (tenant, credentials_id) REFERENCES cluster_credentials (tenant, id)
);

CREATE TABLE gitops_engine_instance (
    id         text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    cluster_id text COLLATE "C" NOT NULL REFERENCES gitops_engine_cluster (id) ON DELETE CASCADE,
    namespace  text        NOT NULL CHECK (namespace <> ''),
    kind       text        NOT NULL CHECK (kind IN ('argocd', 'builtin', 'none')),
    ready      boolean     NOT NULL DEFAULT FALSE,
    created_on timestamptz NOT NULL DEFAULT now()
);

-- The local environment is the tenant's own namespace and has its UID for an id.
CREATE TABLE managed_environment (
    id              text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    tenant          text COLLATE "C" NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    name            text        NOT NULL,
    kind            text        NOT NULL CHECK (kind IN ('local', 'remote')),
    credentials_id  text COLLATE "C",
    allow_automated boolean     NOT NULL DEFAULT TRUE,
    created_on      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant, id),
    FOREIGN KEY (tenant, credentials_id) REFERENCES cluster_credentials (tenant, id),
    CONSTRAINT managed_environment_local CHECK (kind <> 'local' OR (id = tenant AND credentials_id IS NULL))
);

-- Which engine instance deploys to an environment. One instance for each
-- environment of a tenant: of two placements that race, one finds its instance
-- refused and looks again. The wider unique key is what applications refer to.
-- Moving an environment is one update that takes its applications along.
CREATE TABLE cluster_access (
    tenant         text COLLATE "C" NOT NULL,
    environment_id text COLLATE "C" NOT NULL,
    instance_id    text COLLATE "C" NOT NULL REFERENCES gitops_engine_instance (id),
    created_on     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, environment_id),
    UNIQUE (tenant, environment_id, instance_id),
    FOREIGN KEY (tenant, environment_id) REFERENCES managed_environment (tenant, id) ON DELETE CASCADE
);
CREATE INDEX cluster_access_instance ON cluster_access (instance_id, tenant);

CREATE TABLE application (
    id             text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    tenant         text COLLATE "C" NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    name           text        NOT NULL,
    spec           text        NOT NULL,
    instance_id    text COLLATE "C" NOT NULL,
    environment_id text COLLATE "C" NOT NULL,
    generation     bigint      NOT NULL CHECK (generation >= 0),
    version        bigint      NOT NULL DEFAULT 1 CHECK (version > 0),
    created_on     timestamptz NOT NULL DEFAULT now(),
    updated_on     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant, id),
    FOREIGN KEY (tenant, environment_id, instance_id)
        REFERENCES cluster_access (tenant, environment_id, instance_id) ON UPDATE CASCADE
);
CREATE INDEX application_instance ON application (instance_id, id);
CREATE INDEX application_environment ON application (tenant, environment_id, instance_id);

CREATE TABLE application_state (
    application_id text COLLATE "C" PRIMARY KEY,
    tenant         text COLLATE "C" NOT NULL,
    engine_uid     text        NOT NULL,
    sequence       bigint      NOT NULL,
    health         text        NOT NULL DEFAULT '',
    health_message text        NOT NULL DEFAULT '',
    sync           text        NOT NULL DEFAULT '',
    revision       text        NOT NULL DEFAULT '',
    detail         text        NOT NULL DEFAULT '{}',
    updated_on     timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (tenant, application_id) REFERENCES application (tenant, id) ON DELETE CASCADE
);

-- The application's id is the UID of the CR, so this is the CR's name at the
-- time it was taken in. Names find, they do not identify: not unique.
CREATE TABLE deployment_to_application_mapping (
    application_id text COLLATE "C" PRIMARY KEY,
    tenant         text COLLATE "C" NOT NULL,
    namespace      text COLLATE "C" NOT NULL,
    name           text COLLATE "C" NOT NULL,
    FOREIGN KEY (tenant, application_id) REFERENCES application (tenant, id) ON DELETE CASCADE
);
CREATE INDEX deployment_to_application_mapping_name ON deployment_to_application_mapping (namespace, name);

CREATE TABLE kubernetes_to_db_resource_mapping (
    kubernetes_resource_type text NOT NULL CHECK (kubernetes_resource_type IN ('Namespace')),
    kubernetes_resource_uid  text COLLATE "C" NOT NULL CHECK (kubernetes_resource_uid <> ''),
    db_relation_type         text NOT NULL
        CHECK (db_relation_type IN ('ManagedEnvironment', 'GitopsEngineCluster', 'GitopsEngineInstance')),
    db_relation_key          text COLLATE "C" NOT NULL CHECK (db_relation_key <> ''),
    tenant                   text COLLATE "C" NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    PRIMARY KEY (kubernetes_resource_type, kubernetes_resource_uid, db_relation_type, db_relation_key),
    UNIQUE (db_relation_type, db_relation_key)
);

CREATE TABLE api_cr_to_database_mapping (
    cr_type          text NOT NULL CHECK (cr_type IN (
        'GitOpsDeployment', 'GitOpsDeploymentSyncRun',
        'GitOpsDeploymentManagedEnvironment', 'GitOpsDeploymentRepositoryCredential')),
    cr_uid           text COLLATE "C" NOT NULL CHECK (cr_uid <> ''),
    cr_namespace     text COLLATE "C" NOT NULL,
    cr_name          text COLLATE "C" NOT NULL,
    tenant           text COLLATE "C" NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    db_relation_type text NOT NULL
        CHECK (db_relation_type IN ('Application', 'SyncOperation', 'ManagedEnvironment', 'RepositoryCredential')),
    db_relation_key  text COLLATE "C" NOT NULL CHECK (db_relation_key <> ''),
    PRIMARY KEY (cr_type, cr_uid, db_relation_type, db_relation_key)
);
CREATE INDEX api_cr_to_database_mapping_name ON api_cr_to_database_mapping (cr_type, cr_namespace, cr_name);
CREATE INDEX api_cr_to_database_mapping_row ON api_cr_to_database_mapping (db_relation_type, db_relation_key);

CREATE TABLE sync_operation (
    id              text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    tenant          text COLLATE "C" NOT NULL,
    application_id  text COLLATE "C" NOT NULL,
    deployment_name text        NOT NULL,
    revision        text        NOT NULL DEFAULT '',
    desired_state   text        NOT NULL CHECK (desired_state IN ('Running', 'Terminated')),
    created_on      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant, id),
    FOREIGN KEY (tenant, application_id) REFERENCES application (tenant, id) ON DELETE CASCADE
);
CREATE INDEX sync_operation_application ON sync_operation (tenant, application_id);

CREATE TABLE repository_credentials (
    id              text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    tenant          text COLLATE "C" NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    instance_id     text COLLATE "C" NOT NULL REFERENCES gitops_engine_instance (id),
    repository_url  text        NOT NULL CHECK (repository_url <> ''),
    sealed_username bytea,
    sealed_password bytea,
    sealed_ssh_key  bytea,
    key_id          text        NOT NULL DEFAULT '',
    created_on      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant, id),
    CONSTRAINT repository_credentials_key CHECK (key_id <> ''
        OR (sealed_username IS NULL AND sealed_password IS NULL AND sealed_ssh_key IS NULL))
);

CREATE TABLE app_project_repository (
    id                        text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    tenant                    text COLLATE "C" NOT NULL REFERENCES cluster_user (id) ON DELETE CASCADE,
    repository_credentials_id text COLLATE "C",
    repository_url            text        NOT NULL CHECK (repository_url <> ''),
    created_on                timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant, repository_url),
    FOREIGN KEY (tenant, repository_credentials_id) REFERENCES repository_credentials (tenant, id)
);

CREATE TABLE app_project_managed_environment (
    id                     text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    tenant                 text COLLATE "C" NOT NULL,
    managed_environment_id text COLLATE "C" NOT NULL,
    created_on             timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant, managed_environment_id),
    FOREIGN KEY (tenant, managed_environment_id) REFERENCES managed_environment (tenant, id) ON DELETE CASCADE
);

CREATE TABLE application_owner (
    application_id text COLLATE "C" PRIMARY KEY,
    tenant         text COLLATE "C" NOT NULL,
    created_on     timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (tenant, application_id) REFERENCES application (tenant, id) ON DELETE CASCADE
);

-- The outbox. An operation says where to look, not what to do, and it has to
-- outlive both its resource and its tenant: taking down what a removed tenant
-- had on an engine is an operation, too. So neither is a foreign key. The
-- instance is one, because without it there is nobody left to carry it out.
CREATE TABLE operation (
    id                   text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    tenant               text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    instance_id          text COLLATE "C" NOT NULL REFERENCES gitops_engine_instance (id) ON DELETE CASCADE,
    resource_type        text        NOT NULL CHECK (resource_type IN (
        'Application', 'ManagedEnvironment', 'RepositoryCredential', 'SyncOperation', 'GitOpsEngineInstance')),
    resource_id          text COLLATE "C" NOT NULL CHECK (resource_id <> ''),
    state                text        NOT NULL DEFAULT 'Waiting'
        CHECK (state IN ('Waiting', 'In_Progress', 'Completed', 'Failed')),
    human_readable_state text        NOT NULL DEFAULT '',
    version              bigint      NOT NULL DEFAULT 1 CHECK (version > 0),
    created_on           timestamptz NOT NULL DEFAULT now(),
    last_state_update    timestamptz NOT NULL DEFAULT now(),
    gc_expiration        timestamptz
);
-- At most one operation waits for a resource on an instance; a further change
-- reuses it. The instance is part of the key, because a resource that moves
-- needs one operation where it was and another where it goes.
CREATE UNIQUE INDEX operation_waiting ON operation (instance_id, resource_type, resource_id) WHERE state = 'Waiting';
CREATE INDEX operation_unfinished ON operation (id) WHERE state IN ('Waiting', 'In_Progress');
CREATE INDEX operation_final ON operation (last_state_update) WHERE state IN ('Completed', 'Failed');
CREATE INDEX operation_resource ON operation (resource_type, resource_id, id);
