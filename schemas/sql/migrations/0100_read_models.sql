-- The read models: tables of sealed values that the follower writes and everyone reads.

CREATE TABLE projection (
    name    text    PRIMARY KEY,
    version integer NOT NULL,
    seq     bigint  NOT NULL,
    hash    bytea   NOT NULL,
    poison  text
);

CREATE TABLE pool (
    pool_id   text   NOT NULL,
    site      text   NOT NULL,
    state     text   NOT NULL,
    frozen    text   NOT NULL,
    nodes     bigint NOT NULL,
    gpus      bigint NOT NULL,
    PRIMARY KEY (pool_id)
);

CREATE TABLE node (
    node_id          text   NOT NULL,
    pool_id          text   NOT NULL,
    state            text   NOT NULL,
    model            text   NOT NULL,
    gpus             bigint NOT NULL,
    levels           text   NOT NULL,
    failed_slots     text   NOT NULL,
    cause            text   NOT NULL,
    since            bigint NOT NULL,
    intent_version   bigint NOT NULL,
    PRIMARY KEY (node_id)
);

CREATE TABLE tenant (
    tenant_id   text   NOT NULL,
    parent_id   text   NOT NULL,
    state       text   NOT NULL,
    PRIMARY KEY (tenant_id)
);

CREATE TABLE quota_grant (
    grant_id        text   NOT NULL,
    tenant_id       text   NOT NULL,
    pool_id         text   NOT NULL,
    nominal_milli   bigint NOT NULL,
    borrow_milli    bigint NOT NULL,
    lend_milli      bigint NOT NULL,
    "start"         bigint NOT NULL,
    "end"           bigint NOT NULL,
    PRIMARY KEY (grant_id)
);

CREATE TABLE maintenance (
    maintenance_id   text   NOT NULL,
    node_id          text   NOT NULL,
    "start"          bigint NOT NULL,
    "end"            bigint NOT NULL,
    state            text   NOT NULL,
    PRIMARY KEY (maintenance_id)
);

CREATE TABLE reservation (
    reservation_id   text   NOT NULL,
    tenant_id        text   NOT NULL,
    pool_id          text   NOT NULL,
    klass            text   NOT NULL,
    state            text   NOT NULL,
    gpus             bigint NOT NULL,
    nodes            bigint NOT NULL,
    share_milli      bigint NOT NULL,
    milli            bigint NOT NULL,
    short_milli      bigint NOT NULL,
    "start"          bigint NOT NULL,
    "end"            bigint NOT NULL,
    until            bigint NOT NULL,
    reason           text   NOT NULL,
    intent_version   bigint NOT NULL,
    seq              bigint NOT NULL,
    PRIMARY KEY (reservation_id)
);

CREATE TABLE calendar (
    reservation_id   text   NOT NULL,
    node_id          text   NOT NULL,
    first_milli      bigint NOT NULL,
    width_milli      bigint NOT NULL,
    "start"          bigint NOT NULL,
    "end"            bigint NOT NULL,
    tenant_id        text   NOT NULL,
    pool_id          text   NOT NULL,
    klass            text   NOT NULL,
    state            text   NOT NULL,
    PRIMARY KEY (reservation_id, node_id, first_milli, width_milli, "start")
);

CREATE TABLE usage (
    pool_id            text   NOT NULL,
    hour               bigint NOT NULL,
    tenant_id          text   NOT NULL,
    state              text   NOT NULL,
    gpu_microseconds   bigint NOT NULL,
    PRIMARY KEY (pool_id, hour, tenant_id, state)
);

CREATE TABLE capacity (
    pool_id            text   NOT NULL,
    hour               bigint NOT NULL,
    gpu_microseconds   bigint NOT NULL,
    PRIMARY KEY (pool_id, hour)
);

CREATE TABLE request (
    command_id     text   NOT NULL,
    command        text   NOT NULL,
    principal_id   text   NOT NULL,
    kind           text   NOT NULL,
    reason         text   NOT NULL,
    evidence       text   NOT NULL,
    offers         text   NOT NULL,
    recorded_at    bigint NOT NULL,
    seq            bigint NOT NULL,
    PRIMARY KEY (command_id)
);

CREATE INDEX calendar_of_node ON calendar (node_id, start);
CREATE INDEX calendar_of_tenant ON calendar (tenant_id, start);
CREATE INDEX reservation_of_tenant ON reservation (tenant_id, start);
