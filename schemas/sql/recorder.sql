-- name: select_stream_up
-- The events of one stream between two versions, oldest first.
SELECT stream, stream_version, type, body FROM journal
WHERE shard = %(shard)s AND stream = %(stream)s
    AND stream_version > %(gt)s AND stream_version <= %(lte)s
ORDER BY stream_version LIMIT %(limit)s

-- name: select_stream_down
-- The events of one stream between two versions, newest first.
SELECT stream, stream_version, type, body FROM journal
WHERE shard = %(shard)s AND stream = %(stream)s
    AND stream_version > %(gt)s AND stream_version <= %(lte)s
ORDER BY stream_version DESC LIMIT %(limit)s

-- name: select_notifications
-- The events of the log between two positions, of all types or of some.
SELECT seq, stream, stream_version, type, body FROM journal
WHERE shard = %(shard)s AND seq >= %(first)s AND seq <= %(last)s
    AND (cardinality(%(types)s::text[]) = 0 OR type = ANY (%(types)s::text[]))
ORDER BY seq LIMIT %(limit)s

-- name: max_notification
-- The last position of the log; no row, or zero, when it is empty.
SELECT seq FROM log_head WHERE shard = %(shard)s AND seq > 0

-- name: known_versions
-- Those of the (stream, version) pairs that were recorded before.
SELECT j.stream, j.stream_version FROM unnest(%(streams)s::text[], %(versions)s::bigint[]) AS n (stream, version)
JOIN journal j ON j.shard = %(shard)s AND j.stream = n.stream AND j.stream_version = n.version

-- name: insert_tracking
-- Move a reader's place on; no row when it is there or beyond.
INSERT INTO tracking (shard, application, notification_id)
VALUES (%(shard)s, %(application)s, %(notification_id)s)
ON CONFLICT (shard, application) DO UPDATE SET notification_id = excluded.notification_id
    WHERE tracking.notification_id < excluded.notification_id
RETURNING notification_id

-- name: max_tracking
-- How far a reader has come.
SELECT notification_id FROM tracking WHERE shard = %(shard)s AND application = %(application)s

-- name: present_schema
-- The schema that unqualified tables are in.
SELECT current_schema() AS name
