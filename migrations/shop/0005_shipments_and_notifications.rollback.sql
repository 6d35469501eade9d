CREATE TABLE sent_emails (
    seq             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id        uuid        NOT NULL,
    template        text        NOT NULL CHECK (template <> ''),
    idempotency_key text        NOT NULL,
    sent_at         timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON TABLE sent_emails IS
    'Every e-mail handed to the mail service; two rows of one idempotency_key are one e-mail sent twice.';
COMMENT ON COLUMN sent_emails.idempotency_key IS 'Event and handler: the same for every attempt.';

DROP TABLE order_notifications;
DROP TABLE shipments;
