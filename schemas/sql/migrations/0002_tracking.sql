-- How far a reader that keeps its place beside the log has come, per upstream application.

CREATE TABLE tracking (
    shard           integer NOT NULL,
    application     text    NOT NULL,
    notification_id bigint  NOT NULL,
    PRIMARY KEY (shard, application)
);
