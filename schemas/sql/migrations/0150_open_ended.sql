-- Whether a reservation's term is renewed until it is released: 1, else 0.

ALTER TABLE reservation ADD COLUMN open_ended bigint NOT NULL DEFAULT 0;
