-- Publishing from SQL refuses what could never be published, and jobs can be stored from SQL.

CREATE FUNCTION outbox_check_message(
    event_type     text,
    aggregate_type text,
    aggregate_id   text,
    payload        jsonb,
    headers        jsonb
) RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path FROM CURRENT
AS $$
DECLARE
    -- The most that one message may have, for destinations that take less than SQS:
    -- ALTER DATABASE ... SET outboxd.max_bytes = 262144
    most    bigint := coalesce(nullif(current_setting('outboxd.max_bytes', true), ''), '1048576');
    body    text := payload::text;
    size    bigint;
    problem text;
    advice  text;
BEGIN
    IF coalesce(char_length(event_type), 0) NOT BETWEEN 1 AND 128 THEN
        problem := 'event_type has 1 to 128 characters, and this is ' || quote_nullable(left(event_type, 200));
    ELSIF event_type ~ '[\u0001-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufffe\uffff]' THEN
        problem := 'event_type holds white space or a control character: ' || quote_literal(event_type);
        advice := 'Routes and handlers match types by globs, in which it would match nothing.';
    ELSIF coalesce(char_length(aggregate_type), 0) NOT BETWEEN 1 AND 255 THEN
        problem := 'aggregate_type has 1 to 255 characters, and this is '
            || quote_nullable(left(aggregate_type, 300));
    ELSIF coalesce(char_length(aggregate_id), 0) NOT BETWEEN 1 AND 255 THEN
        problem := 'aggregate_id has 1 to 255 characters, and this is '
            || quote_nullable(left(aggregate_id, 300));
    ELSIF aggregate_type || aggregate_id
            ~ '[\u0001-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]' THEN
        problem := 'aggregate_type or aggregate_id holds a character that messages cannot carry: '
            || quote_literal(aggregate_type || '/' || aggregate_id);
        advice := 'Leave control characters out, or encode them.';
    ELSIF payload IS NULL THEN
        problem := 'payload is NULL';
        advice := 'For an event without content give ''null'' or ''{}'' as jsonb.';
    ELSIF headers IS NULL OR jsonb_typeof(headers) <> 'object'
            OR jsonb_path_exists(headers, 'strict $.* ? (@.type() != "string")') THEN
        problem := 'headers is an object of texts, and this is ' || quote_nullable(left(headers::text, 300));
    -- Walked through only if there are brackets enough.
    ELSIF octet_length(body) - octet_length(translate(body, '[{', '')) > 256
            AND jsonb_path_exists(
                payload, 'strict $.**{256} ? (@.type() == "array" || @.type() == "object")'
            ) THEN
        problem := 'payload nests more than 256 arrays and objects in one another';
        advice := 'Decoders refuse it: flatten it, or give the inner part as a text.';
    ELSE
        -- The names are in the body and beside it; 1024 is more than all else around the payload.
        size := 1024 + octet_length(body)
            + 2 * octet_length(json_build_array(event_type, aggregate_type, aggregate_id)::text)
            + coalesce(octet_length(headers ->> 'traceparent'), 0);
        IF size > most THEN
            problem := format('the message would take %s bytes, and the limit is %s', size, most);
            advice := 'Store the payload elsewhere and publish a reference to it.';
        END IF;
    END IF;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'this can never be published: ' || problem,
            HINT = coalesce(advice, '');
    END IF;
END;
$$;

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
    PERFORM outbox_check_message(event_type, aggregate_type, aggregate_id, payload, headers);
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

CREATE FUNCTION outbox_enqueue(
    job_type text,
    payload  jsonb,
    key      text DEFAULT NULL,
    headers  jsonb DEFAULT '{}',
    job_id   uuid DEFAULT NULL,
    ordered  boolean DEFAULT false
) RETURNS uuid
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
    job_id := coalesce(job_id, gen_random_uuid());
    RETURN outbox_publish(
        job_type, 'job', coalesce(key, job_id::text), payload, headers, job_id, ordered
    );
END;
$$;

COMMENT ON FUNCTION outbox_check_message(text, text, text, jsonb, jsonb) IS
    'Raises invalid_parameter_value for an event that could never be published, with what to mend.';
COMMENT ON FUNCTION outbox_enqueue(text, jsonb, text, jsonb, uuid, boolean) IS
    'Stores a job in the caller''s transaction and returns its id. key: jobs that wait for each other.';
