-- Beside the log: who the principals are, and the keys of the words that they wrote. Both can be forgotten;
-- at_seq is where the log stood when a row was written, so that only what is older is.

CREATE TABLE directory (
    subject_id text   PRIMARY KEY,
    name       text   NOT NULL,
    email      text   NOT NULL,
    at_seq     bigint NOT NULL
);

CREATE TABLE subject_key (
    subject_id text   PRIMARY KEY,
    key        bytea  NOT NULL CHECK (octet_length(key) = 64),
    at_seq     bigint NOT NULL
);
