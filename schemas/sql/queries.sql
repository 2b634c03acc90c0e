-- name: take_lease
-- Become the writer when nobody is, or the former one's term is over by the database's clock.
INSERT INTO writer_lease (shard, epoch, holder, expires_at)
VALUES (%(shard)s, 1, %(holder)s, now() + make_interval(secs => %(seconds)s))
ON CONFLICT (shard) DO UPDATE
    SET epoch = writer_lease.epoch + 1, holder = excluded.holder, expires_at = excluded.expires_at
    WHERE writer_lease.expires_at <= now()
RETURNING epoch

-- name: raise_lease
-- Let the next lease be above an epoch that is known from elsewhere.
INSERT INTO writer_lease (shard, epoch, holder, expires_at)
VALUES (%(shard)s, %(epoch)s, 'restore', now())
ON CONFLICT (shard) DO UPDATE SET epoch = greatest(writer_lease.epoch, excluded.epoch)
RETURNING epoch

-- name: lease_left
-- How many seconds the present writer's term has left, and who it is.
SELECT extract(epoch FROM expires_at - now())::float8 AS seconds, holder
FROM writer_lease WHERE shard = %(shard)s

-- name: renew_lease
-- Stay the writer for another term; a fork that the relay found lets nobody write.
UPDATE writer_lease SET expires_at = now() + make_interval(secs => %(seconds)s)
WHERE shard = %(shard)s AND epoch = %(epoch)s
RETURNING epoch, coalesce((
    SELECT halted FROM relay_mark WHERE relay_mark.shard = writer_lease.shard AND halted LIKE 'fork:%%'
), '') AS fork

-- name: release_lease
-- Let the next writer in without a wait.
UPDATE writer_lease SET expires_at = now() WHERE shard = %(shard)s AND epoch = %(epoch)s

-- name: raise_epoch
-- Fence every former writer: the head bears the new epoch, and no lower one ever again.
INSERT INTO log_head (shard, seq, epoch, recorded_at, tree)
VALUES (%(shard)s, 0, %(epoch)s, 0, ''::bytea)
ON CONFLICT (shard) DO UPDATE SET epoch = excluded.epoch WHERE log_head.epoch < excluded.epoch
RETURNING shard, seq, epoch, recorded_at, tree

-- name: head
-- Where the log ends.
SELECT shard, seq, epoch, recorded_at, tree FROM log_head WHERE shard = %(shard)s

-- name: end_session
-- End a session of this writer that lost its wire, whatever it was about to do.
SELECT pg_terminate_backend(pid, 5000) AS ended FROM pg_stat_activity
WHERE application_name = %(name)s AND pid <> pg_backend_pid()

-- name: move_head
-- Go on from exactly the head that the writer knows, or not at all.
UPDATE log_head SET seq = %(seq)s, recorded_at = %(recorded_at)s, tree = %(tree)s
WHERE shard = %(shard)s AND epoch = %(epoch)s AND seq = %(previous_seq)s

-- name: claims
-- Those of the keys that were used before.
-- LIMIT keeps the planner from a join over the whole table before it has statistics of it.
SELECT c.scope, c.key, c.command_id, c.fingerprint, c.seq_from, c.seq_to
FROM unnest(%(scopes)s::text[], %(keys)s::text[]) AS k (scope, key)
CROSS JOIN LATERAL (
    SELECT * FROM claim WHERE shard = %(shard)s AND scope = k.scope AND key = k.key LIMIT 1
) AS c

-- name: remove_cells
-- Give up entitlements; each box is there exactly once.
DELETE FROM cell USING unnest(%(cells)s::box[]) AS gone (box)
WHERE cell.shard = %(shard)s AND cell.cell ~= gone.box

-- name: append_small
-- A small batch in one statement: the head's move is the condition of all the rest.
WITH moved AS (
    UPDATE log_head SET seq = %(seq)s, recorded_at = %(recorded_at)s, tree = %(tree)s
    WHERE shard = %(shard)s AND epoch = %(epoch)s AND seq = %(previous_seq)s
    RETURNING shard
), events AS (
    INSERT INTO journal (shard, seq, type, stream, stream_version, recorded_at, envelope, body, leaf)
    SELECT moved.shard, e.* FROM moved, unnest(
        %(seqs)s::bigint[], %(types)s::text[], %(streams)s::text[], %(versions)s::bigint[],
        %(instants)s::bigint[], %(envelopes)s::bytea[], %(bodies)s::bytea[], %(leaves)s::bytea[]
    ) AS e
), claims AS (
    INSERT INTO claim (shard, scope, key, command_id, fingerprint, seq_from, seq_to)
    SELECT moved.shard, c.* FROM moved, unnest(
        %(scopes)s::text[], %(keys)s::text[], %(ids)s::bytea[], %(fingerprints)s::bytea[],
        %(firsts)s::bigint[], %(lasts)s::bigint[]
    ) AS c
), cells AS (
    INSERT INTO cell (shard, cell) SELECT moved.shard, c.box
    FROM moved, unnest(%(cells)s::box[]) AS c (box)
)
SELECT count(*) AS moved, pg_notify('gpuledger_journal', '')::text AS told FROM moved

-- name: note_offsets
-- How far each partition of the commands' topic has been taken in.
INSERT INTO ingress_offset (shard, topic, partition, "offset")
SELECT %(shard)s, o.* FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(offsets)s::bigint[]) AS o
ON CONFLICT (shard, topic, partition) DO UPDATE SET "offset" = excluded."offset"

-- name: add_tiles
-- Tiles of the tree that this batch completed.
INSERT INTO tile (shard, level, index, hashes)
SELECT %(shard)s, t.* FROM unnest(%(levels)s::int[], %(indexes)s::bigint[], %(hashes)s::bytea[]) AS t

-- name: read
-- Events behind a position, in order.
SELECT seq, type, stream, stream_version, recorded_at, envelope, body, leaf
FROM journal WHERE shard = %(shard)s AND seq > %(after)s ORDER BY seq LIMIT %(limit)s

-- name: read_stream
-- The events of one stream, in order.
SELECT seq, type, stream, stream_version, recorded_at, envelope, body, leaf
FROM journal WHERE shard = %(shard)s AND stream = %(stream)s ORDER BY stream_version LIMIT %(limit)s

-- name: newest_snapshot
-- The newest snapshot of a format.
SELECT seq, state, state_hash FROM snapshot
WHERE shard = %(shard)s AND fingerprint = %(fingerprint)s ORDER BY seq DESC LIMIT 1

-- name: save_snapshot
-- Keep a snapshot.
INSERT INTO snapshot (shard, seq, fingerprint, state, state_hash)
VALUES (%(shard)s, %(seq)s, %(fingerprint)s, %(state)s, %(state_hash)s)
ON CONFLICT DO NOTHING

-- name: forget_snapshots
-- Forget all but the newest few.
DELETE FROM snapshot WHERE shard = %(shard)s AND seq NOT IN (
    SELECT seq FROM snapshot WHERE shard = %(shard)s ORDER BY seq DESC LIMIT %(kept)s)

-- name: take_turn
-- Be the one relay of a shard for as long as this session lives.
SELECT pg_try_advisory_lock(%(lock)s, %(shard)s) AS taken

-- name: relay_mark
-- How far the public copy of a shard is known to have come.
SELECT seq, epoch, topic_id, halted FROM relay_mark WHERE shard = %(shard)s

-- name: move_relay_mark
-- Keep how far the public copy has come; a relay that is late takes nothing back.
INSERT INTO relay_mark (shard, seq, epoch, topic_id)
VALUES (%(shard)s, %(seq)s, %(epoch)s, %(topic_id)s)
ON CONFLICT (shard) DO UPDATE
    SET seq = excluded.seq, epoch = excluded.epoch, topic_id = excluded.topic_id
    WHERE relay_mark.seq <= excluded.seq OR relay_mark.topic_id <> excluded.topic_id

-- name: halt_relay
-- Keep why neither relay nor sequencer may go on.
INSERT INTO relay_mark (shard, seq, epoch, topic_id, halted)
VALUES (%(shard)s, 0, 0, '', %(reason)s)
ON CONFLICT (shard) DO UPDATE SET halted = excluded.halted

-- name: accept_topic
-- Somebody accepts the topic as it is: the relay goes on behind its last record.
UPDATE relay_mark SET seq = %(seq)s, epoch = %(epoch)s, topic_id = %(topic_id)s, halted = ''
WHERE shard = %(shard)s

-- name: resume_relay
-- Somebody has looked: relay and sequencer may go on.
UPDATE relay_mark SET halted = '' WHERE shard = %(shard)s

-- name: decided_offsets
-- The last command of each partition that the ledger took in.
SELECT partition, "offset" FROM ingress_offset WHERE shard = %(shard)s AND topic = %(topic)s

-- name: answered_offsets
-- The last command of each partition whose outcome is published.
SELECT partition, "offset" FROM answered_offset WHERE shard = %(shard)s AND topic = %(topic)s

-- name: answer_offsets
-- Keep up to where outcomes are published.
INSERT INTO answered_offset (shard, topic, partition, "offset")
SELECT %(shard)s, %(topic)s, o.* FROM unnest(%(partitions)s::int[], %(offsets)s::bigint[]) AS o
ON CONFLICT (shard, topic, partition) DO UPDATE SET "offset" = excluded."offset"

-- name: tile
-- One full tile of the tree.
SELECT hashes FROM tile WHERE shard = %(shard)s AND level = %(level)s AND index = %(index)s

-- name: tiles
-- Every full tile of the tree.
SELECT level, index, hashes FROM tile WHERE shard = %(shard)s ORDER BY level, index

-- name: cells_differ
-- How many cells are missing, and how many too many, compared with those that there should be.
WITH wanted AS (SELECT unnest(%(cells)s::box[])::text AS cell),
     stored AS (SELECT cell::text AS cell FROM cell WHERE shard = %(shard)s)
SELECT (SELECT count(*) FROM (SELECT * FROM wanted EXCEPT ALL SELECT * FROM stored) AS m) AS missing,
       (SELECT count(*) FROM (SELECT * FROM stored EXCEPT ALL SELECT * FROM wanted) AS e) AS extra
