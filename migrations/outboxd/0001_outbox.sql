-- The outbox: what producers write and the relay publishes.

CREATE TABLE outbox_events (
    -- CACHE 1 is the default and has to stay: a cached block would give a later insert of another
    -- session a lower number, and `seq` is the order of an aggregate's events.
    seq             bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
    id              uuid        NOT NULL DEFAULT gen_random_uuid(),
    event_type      text        NOT NULL CHECK (char_length(event_type) BETWEEN 1 AND 128),
    aggregate_type  text        NOT NULL CHECK (char_length(aggregate_type) <= 255),
    aggregate_id    text        NOT NULL CHECK (char_length(aggregate_id) <= 255),
    payload         jsonb       NOT NULL,
    headers         jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(headers) = 'object'),
    -- Not now(): that is the start of the transaction, hours before the insert in the worst case.
    occurred_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    published_at    timestamptz,
    attempts        integer     NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    next_attempt_at timestamptz,
    -- Bounded by the relay, not by a CHECK: that would fail the statement which records failures.
    last_error      text,
    -- No CHECK forbids dead_at beside published_at: a late success is a fact and must be storable.
    dead_at         timestamptz,
    delivered_to    text[]
) WITH (
    -- Rows change once or twice and are then purged: vacuum by number of rows, never by a share of
    -- a table that retention makes large, and without pauses.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 50000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_index_cleanup = on
);

-- The relay's only way in: the pending events of one bucket in order. Every further B-tree would be
-- written again by each mark.
CREATE INDEX outbox_events_pending ON outbox_events (
    ((hashtextextended(aggregate_type || chr(31) || aggregate_id, 0) & 63)::smallint),
    seq
) WHERE published_at IS NULL AND dead_at IS NULL;

-- For counting and listing what was given up. Its predicate keeps ordinary marks from writing to it.
CREATE INDEX outbox_events_dead ON outbox_events (seq) WHERE dead_at IS NOT NULL;

CREATE TABLE outbox_buckets (
    bucket      smallint PRIMARY KEY CHECK (bucket BETWEEN 0 AND 63),
    owner       uuid,
    epoch       bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    lease_until timestamptz
) WITH (
    fillfactor = 50, -- renewals every few seconds stay in their page
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);

INSERT INTO outbox_buckets (bucket) SELECT generate_series(0, 63);

CREATE TABLE outbox_relays (
    id   uuid PRIMARY KEY,
    host text NOT NULL,
    pid  integer NOT NULL,
    seen timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);

COMMENT ON TABLE outbox_events IS
    'Facts that wait to be published, and those published within the retention. Producers only insert.';
COMMENT ON COLUMN outbox_events.seq IS
    'Order of inserts, and of the publication of each aggregate''s events. Gaps are rolled-back transactions.';
COMMENT ON COLUMN outbox_events.id IS 'The event''s public id; consumers recognise repeats by it.';
COMMENT ON COLUMN outbox_events.event_type IS
    'What routes and handlers match, such as order.placed; at most 128 characters, EventBridge''s limit.';
COMMENT ON COLUMN outbox_events.aggregate_type IS 'Kind of the thing the event is about, such as order.';
COMMENT ON COLUMN outbox_events.aggregate_id IS
    'Which one. Events of the same aggregate are published one after another.';
COMMENT ON COLUMN outbox_events.payload IS 'The event''s content, published as it is.';
COMMENT ON COLUMN outbox_events.headers IS 'Text values that travel beside the payload, such as traceparent.';
COMMENT ON COLUMN outbox_events.occurred_at IS 'When the event was inserted. Says nothing about order: seq does.';
COMMENT ON COLUMN outbox_events.published_at IS
    'When every destination had accepted the event. Null: pending, or dead.';
COMMENT ON COLUMN outbox_events.attempts IS
    'How often a destination refused this event. Outages of a destination are not counted.';
COMMENT ON COLUMN outbox_events.next_attempt_at IS
    'Not tried before this moment; later events of the same aggregate wait as well.';
COMMENT ON COLUMN outbox_events.last_error IS 'Why the last attempt failed.';
COMMENT ON COLUMN outbox_events.dead_at IS
    'When the relay gave up; `outboxd outbox requeue` and `discard` end this state. Null: it has not.';
COMMENT ON COLUMN outbox_events.delivered_to IS
    'Destinations that accepted the event while others did not yet; they are not sent it again.';
COMMENT ON INDEX outbox_events_pending IS 'Pending events by bucket, in order: what relays read.';

COMMENT ON TABLE outbox_buckets IS
    'Which relay publishes which 64th of the aggregates. Never insert or delete rows here.';
COMMENT ON COLUMN outbox_buckets.bucket IS 'Hash of aggregate_type and aggregate_id, modulo 64.';
COMMENT ON COLUMN outbox_buckets.owner IS 'The relay, as in outbox_relays. Null: free.';
COMMENT ON COLUMN outbox_buckets.epoch IS
    'Grows with every change of owner; a relay that lost the bucket cannot record failures any more.';
COMMENT ON COLUMN outbox_buckets.lease_until IS 'Past it, and not renewed, the bucket is free.';

COMMENT ON TABLE outbox_relays IS 'Relays that are alive, so that each knows its fair share of buckets.';
COMMENT ON COLUMN outbox_relays.id IS 'New for every start of a relay.';
COMMENT ON COLUMN outbox_relays.host IS 'Where it runs.';
COMMENT ON COLUMN outbox_relays.pid IS 'Its process id there.';
COMMENT ON COLUMN outbox_relays.seen IS 'When it last said so.';
