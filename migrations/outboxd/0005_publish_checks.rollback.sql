DROP FUNCTION outbox_enqueue(text, jsonb, text, jsonb, uuid, boolean);
CREATE OR REPLACE FUNCTION outbox_publish(
    event_type     text,
    aggregate_type text,
    aggregate_id   text,
    payload        jsonb,
    headers        jsonb DEFAULT '{}',
    event_id       uuid DEFAULT NULL,
    ordered        boolean DEFAULT false
) RETURNS uuid
LANGUAGE plpgsql
-- The tables of this schema, whatever search path the caller has.
SET search_path FROM CURRENT
AS $$
BEGIN
    -- Rather than INSERT ... RETURNING: a producer then needs no right to read the outbox.
    event_id := coalesce(event_id, gen_random_uuid());
    IF ordered THEN
        -- Taken before the insert draws its seq, held until commit: writers of one aggregate that
        -- do not lock it themselves then commit in the order of their seq.
        PERFORM pg_advisory_xact_lock(
            hashtextextended(aggregate_type || chr(31) || aggregate_id, 0)
        );
    END IF;
    INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload, headers)
    VALUES (
        outbox_publish.event_id,
        outbox_publish.event_type,
        outbox_publish.aggregate_type,
        outbox_publish.aggregate_id,
        outbox_publish.payload,
        outbox_publish.headers
    );
    RETURN event_id;
END;
$$;

DROP FUNCTION outbox_check_message(text, text, text, jsonb, jsonb);
