-- Where a reservation's environment stood last while it ran; empty when it asked for none.

ALTER TABLE reservation ADD COLUMN environment text NOT NULL DEFAULT '';
