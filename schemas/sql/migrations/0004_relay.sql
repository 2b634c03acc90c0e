-- How far each shard's public copy is known to have come, and why nothing may go on if something is wrong.

CREATE TABLE relay_mark (
    shard    integer PRIMARY KEY,
    seq      bigint  NOT NULL,
    epoch    bigint  NOT NULL,
    topic_id text    NOT NULL,
    halted   text    NOT NULL DEFAULT ''
);
