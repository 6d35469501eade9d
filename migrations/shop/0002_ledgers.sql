-- Ledgers: appended to, and without any unique constraint, so that something done twice shows.

CREATE TABLE sent_emails (
    seq             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id        uuid        NOT NULL,
    template        text        NOT NULL CHECK (template <> ''),
    idempotency_key text        NOT NULL,
    sent_at         timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE effects (
    seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid        NOT NULL,
    handler  text        NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON TABLE sent_emails IS
    'Every e-mail handed to the mail service; two rows of one idempotency_key are one e-mail sent twice.';
COMMENT ON COLUMN sent_emails.idempotency_key IS 'Event and handler: the same for every attempt.';
COMMENT ON TABLE effects IS
    'One row for every time a handler took effect, written in the same transaction as its inbox mark.';
COMMENT ON COLUMN effects.handler IS 'Name of the handler in the configuration.';
