-- Pool-hours that are closed, as the follower keeps them: the states of each sum to its capacity.

CREATE TABLE pool_hour (
    pool_id          text   NOT NULL,
    hour             bigint NOT NULL,
    state            text   NOT NULL,
    gpu_microseconds bigint NOT NULL,
    cutoff_seq       bigint NOT NULL,
    seq              bigint NOT NULL,
    PRIMARY KEY (pool_id, hour, state)
);
