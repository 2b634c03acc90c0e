-- The journal of a shard: its events, head, lease, claims, cells, tree and snapshots.
-- `shard` leads every key, so that a shard can live in a database of its own.

CREATE TABLE log_head (
    shard       integer PRIMARY KEY,
    seq         bigint  NOT NULL,
    epoch       bigint  NOT NULL,
    recorded_at bigint  NOT NULL,
    tree        bytea   NOT NULL
);

CREATE TABLE writer_lease (
    shard      integer     PRIMARY KEY,
    epoch      bigint      NOT NULL,
    holder     text        NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE TABLE journal (
    shard          integer NOT NULL,
    seq            bigint  NOT NULL,
    type           text    NOT NULL,
    stream         text    NOT NULL,
    stream_version bigint  NOT NULL,
    recorded_at    bigint  NOT NULL,
    envelope       bytea   NOT NULL,
    body           bytea   NOT NULL,
    leaf           bytea   NOT NULL,
    PRIMARY KEY (shard, seq),
    UNIQUE (shard, stream, stream_version)
);

CREATE TABLE claim (
    shard       integer NOT NULL,
    scope       text    NOT NULL,
    key         text    NOT NULL,
    command_id  bytea   NOT NULL,
    fingerprint bytea   NOT NULL,
    seq_from    bigint  NOT NULL,
    seq_to      bigint  NOT NULL,
    PRIMARY KEY (shard, scope, key)
);

CREATE TABLE ingress_offset (
    shard     integer NOT NULL,
    topic     text    NOT NULL,
    partition integer NOT NULL,
    "offset"  bigint  NOT NULL,
    PRIMARY KEY (shard, topic, partition)
);

-- A cell is the box (fleet-wide milli-GPU) x (microseconds). Boxes are closed, so each upper
-- corner lies half a unit inside. Base offsets of shards lie apart, so boxes of two never meet.
CREATE TABLE cell (
    shard integer NOT NULL,
    cell  box     NOT NULL,
    EXCLUDE USING gist (cell WITH &&)
);

CREATE TABLE tile (
    shard  integer NOT NULL,
    level  integer NOT NULL,
    index  bigint  NOT NULL,
    hashes bytea   NOT NULL,
    PRIMARY KEY (shard, level, index)
);

CREATE TABLE snapshot (
    shard       integer NOT NULL,
    seq         bigint  NOT NULL,
    fingerprint bytea   NOT NULL,
    state       bytea   NOT NULL,
    state_hash  bytea   NOT NULL,
    PRIMARY KEY (shard, seq, fingerprint)
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END;
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON journal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON tile
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON claim
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

REVOKE UPDATE, DELETE, TRUNCATE ON journal, tile, claim FROM PUBLIC;
