-- The inbox: what handlers have done, what failed, and what may have crashed a process.

CREATE TABLE processed_events (
    event_id     uuid        NOT NULL,
    handler      text        NOT NULL CHECK (char_length(handler) BETWEEN 1 AND 255),
    processed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (event_id, handler)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);

-- For the purge by age. Rows are appended in the order of this column, so block ranges find them as
-- well as a B-tree would, without its write for every message.
CREATE INDEX processed_events_age ON processed_events
    USING brin (processed_at) WITH (autosummarize = on);

CREATE TABLE handler_failures (
    event_id       uuid        NOT NULL,
    handler        text        NOT NULL CHECK (char_length(handler) BETWEEN 1 AND 255),
    message_id     text        NOT NULL,
    attempts       integer     NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    last_error     text,
    last_failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    dead_at        timestamptz,
    PRIMARY KEY (event_id, handler)
);

CREATE TABLE suspects (
    queue         text        NOT NULL,
    message_id    text        NOT NULL,
    crashes_alone integer     NOT NULL DEFAULT 0 CHECK (crashes_alone >= 0),
    reason        text        NOT NULL,
    last_crash_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (queue, message_id)
);

COMMENT ON TABLE processed_events IS
    'One row for every event and handler that is done. Deleting a row lets a repeat take effect again.';
COMMENT ON COLUMN processed_events.event_id IS 'The event, as in outbox_events.id of its producer.';
COMMENT ON COLUMN processed_events.handler IS
    'Name of the handler in the configuration. Renaming a handler forgets what it has done.';
COMMENT ON COLUMN processed_events.processed_at IS
    'When. Rows older than the inbox retention are purged; it must outlast every redelivery and redrive.';
COMMENT ON INDEX processed_events_age IS 'Rows by age, for the purge.';

COMMENT ON TABLE handler_failures IS
    'Handlers that failed an event: how often, and the last error.';
COMMENT ON COLUMN handler_failures.event_id IS 'The event that failed.';
COMMENT ON COLUMN handler_failures.handler IS 'Name of the handler in the configuration.';
COMMENT ON COLUMN handler_failures.message_id IS
    'SQS message of the last failure. A redrive brings a new one, and attempts count from zero again.';
COMMENT ON COLUMN handler_failures.attempts IS 'Failed attempts with this message.';
COMMENT ON COLUMN handler_failures.last_error IS 'What the handler raised last.';
COMMENT ON COLUMN handler_failures.last_failed_at IS 'When that was.';
COMMENT ON COLUMN handler_failures.dead_at IS
    'When the handler''s attempts were used up or it rejected the event. Null: it will be tried again.';

COMMENT ON TABLE suspects IS
    'Messages that were in work when their process died; each is run alone until it is cleared.';
COMMENT ON COLUMN suspects.queue IS 'Name of the queue in the configuration.';
COMMENT ON COLUMN suspects.message_id IS 'The SQS message.';
COMMENT ON COLUMN suspects.crashes_alone IS
    'How often a process died with nothing but this message in work. Two end in the dead-letter queue.';
COMMENT ON COLUMN suspects.reason IS 'How the process ended: crash or timeout.';
COMMENT ON COLUMN suspects.last_crash_at IS 'When it last did.';
