-- Prices and billing periods, as the follower keeps them.

CREATE TABLE price_book (
    book_id       text   NOT NULL,
    version       bigint NOT NULL,
    currency      text   NOT NULL,
    "start"       bigint NOT NULL,
    "end"         bigint NOT NULL,
    tenant_ids    text   NOT NULL,
    rates         text   NOT NULL,
    unused_split  text   NOT NULL,
    corrects      bigint NOT NULL,
    seq           bigint NOT NULL,
    PRIMARY KEY (book_id, version)
);

CREATE TABLE billing_period (
    tenant_id     text   NOT NULL,
    "start"       bigint NOT NULL,
    "end"         bigint NOT NULL,
    zone          text   NOT NULL,
    settlement    text   NOT NULL,
    state         text   NOT NULL,
    cutoff_seq    bigint NOT NULL,
    rows          bigint NOT NULL,
    row_root      text   NOT NULL,
    billed        text   NOT NULL,
    currency      text   NOT NULL,
    PRIMARY KEY (tenant_id, "start")
);
