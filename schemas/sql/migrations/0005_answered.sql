-- Up to where each partition's commands were answered; what was decided stands in ingress_offset.

CREATE TABLE answered_offset (
    shard     integer NOT NULL,
    topic     text    NOT NULL,
    partition integer NOT NULL,
    "offset"  bigint  NOT NULL,
    PRIMARY KEY (shard, topic, partition)
);
