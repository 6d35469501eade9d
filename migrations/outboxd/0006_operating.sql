-- What operators have done to the outbox; and when queues were polled, by which marks grow old.

CREATE TABLE outbox_audit (
    entry      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Filled in by the default: an operator's role is given no right to write it.
    role       text        NOT NULL DEFAULT current_user,
    operator   text        NOT NULL CHECK (char_length(operator) BETWEEN 1 AND 200),
    run        uuid        NOT NULL,
    command    text        NOT NULL CHECK (command IN ('requeue', 'discard', 'prune')),
    reason     text        CHECK (char_length(reason) <= 500),
    selection  jsonb       NOT NULL CHECK (jsonb_typeof(selection) = 'object'),
    events     integer     NOT NULL CHECK (events > 0),
    first_seq  bigint      NOT NULL,
    last_seq   bigint      NOT NULL,
    event_ids  uuid[]
);

-- Not by grants alone: the owner of the tables should not change the past by mistake either.
CREATE FUNCTION outbox_audit_refuse_changes() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'outbox_audit is append-only' USING ERRCODE = 'insufficient_privilege';
END;
$$;

CREATE TRIGGER outbox_audit_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON outbox_audit
    FOR EACH STATEMENT EXECUTE FUNCTION outbox_audit_refuse_changes();

CREATE TABLE inbox_polls (
    queue           text PRIMARY KEY,
    polled_at       timestamptz NOT NULL,
    lasting_seconds float8
) WITH (fillfactor = 50);

CREATE TABLE inbox_gaps (
    queue      text        NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz NOT NULL CHECK (ended_at > started_at),
    PRIMARY KEY (queue, started_at)
);

COMMENT ON TABLE outbox_audit IS
    'What `outboxd outbox` has changed: a row for each batch, written in its transaction. Append-only.';
COMMENT ON COLUMN outbox_audit.entry IS 'Order of the entries.';
COMMENT ON COLUMN outbox_audit.at IS 'When.';
COMMENT ON COLUMN outbox_audit.role IS 'The database role that did it.';
COMMENT ON COLUMN outbox_audit.operator IS
    'The person, as given with --by, else the name that the operating system knows.';
COMMENT ON COLUMN outbox_audit.run IS 'One run of the command; its batches share it.';
COMMENT ON COLUMN outbox_audit.command IS 'requeue, discard or prune.';
COMMENT ON COLUMN outbox_audit.reason IS 'Why, as given with --reason.';
COMMENT ON COLUMN outbox_audit.selection IS 'The ids and filters of the command line.';
COMMENT ON COLUMN outbox_audit.events IS 'How many events this batch has changed.';
COMMENT ON COLUMN outbox_audit.first_seq IS 'Its lowest outbox_events.seq.';
COMMENT ON COLUMN outbox_audit.last_seq IS 'Its highest.';
COMMENT ON COLUMN outbox_audit.event_ids IS 'Which events; null for prune, whose events are gone.';

COMMENT ON TABLE inbox_polls IS 'When each queue was last known to be polled.';
COMMENT ON COLUMN inbox_polls.queue IS 'Name of the queue in the configuration.';
COMMENT ON COLUMN inbox_polls.polled_at IS 'When a pool last said so, which it does every minute.';

COMMENT ON COLUMN inbox_polls.lasting_seconds IS
    'How long SQS keeps its messages and its dead letters together. Null: not known yet.';

COMMENT ON TABLE inbox_gaps IS
    'When queues were not polled: that time does not count for the age of inbox marks.';
COMMENT ON COLUMN inbox_gaps.queue IS 'Name of the queue in the configuration.';
COMMENT ON COLUMN inbox_gaps.started_at IS 'The last poll before.';
COMMENT ON COLUMN inbox_gaps.ended_at IS 'The first one after.';
