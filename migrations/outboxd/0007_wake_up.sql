-- How a relay that sleeps is woken by a commit. The trigger is disabled until its owner enables it:
-- docs/operations.md.

CREATE TABLE outbox_sleepers (
    relay        uuid PRIMARY KEY,
    asleep_until timestamptz NOT NULL
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 200,
    vacuum_truncate = off -- truncating takes a lock that every insert into the outbox would wait for
);

-- Made by name, with the schema in its text: a definer's function must not find anything by a search
-- path, and SET search_path FROM CURRENT would look into the caller's pg_temp first.
DO $migration$
BEGIN
    EXECUTE format(
        $create$
        CREATE FUNCTION outbox_wake_sleepers() RETURNS trigger
        LANGUAGE plpgsql
        -- A producer may insert and nothing else, so the sleepers are looked up for it.
        SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp
        AS $function$
        BEGIN
            -- now() is the start of the transaction: too early at worst, which wakes in vain.
            IF EXISTS (SELECT FROM %1$I.outbox_sleepers WHERE asleep_until > now()) THEN
                PERFORM pg_notify(%2$L, '');
            END IF;
            RETURN NULL;
        EXCEPTION WHEN OTHERS THEN
            -- Relays look by themselves as well: no reason is good enough to fail a producer.
            RETURN NULL;
        END;
        $function$
        $create$,
        current_schema(),
        left('outboxd_' || current_schema(), 63)
    );
END;
$migration$;

REVOKE ALL ON FUNCTION outbox_wake_sleepers() FROM PUBLIC;

-- For each statement, not for each row: a thousand rows of one insert are one look.
CREATE TRIGGER outbox_events_wake_sleepers
    AFTER INSERT ON outbox_events
    FOR EACH STATEMENT EXECUTE FUNCTION outbox_wake_sleepers();

ALTER TABLE outbox_events DISABLE TRIGGER outbox_events_wake_sleepers;

COMMENT ON TABLE outbox_sleepers IS
    'Relays that want to be woken by a commit; producers notify only while there is one.';
COMMENT ON COLUMN outbox_sleepers.relay IS 'As in outbox_relays.';
COMMENT ON COLUMN outbox_sleepers.asleep_until IS
    'Past it the row counts no more: its relay was killed, or it would have moved it on.';
COMMENT ON FUNCTION outbox_wake_sleepers() IS
    'Notifies the channel outboxd_<schema> if a relay sleeps. Its trigger is disabled unless enabled by hand.';
