-- What the shop has asked others to do: couriers to fetch parcels, services to tell customers.

CREATE TABLE shipments (
    id              uuid        PRIMARY KEY,
    order_id        uuid        NOT NULL UNIQUE REFERENCES orders (id),
    tracking_number text        NOT NULL CHECK (tracking_number <> ''),
    requested_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE order_notifications (
    order_id          uuid        NOT NULL REFERENCES orders (id),
    notification_type text        NOT NULL CHECK (notification_type ~ '^[a-z]+:[a-z_]+$'),
    sent_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (order_id, notification_type)
);

-- Never written to: e-mails are counted in the mailbox that they arrive in.
DROP TABLE sent_emails;

COMMENT ON TABLE shipments IS 'Pickups that the courier has confirmed, one for each order.';
COMMENT ON COLUMN shipments.tracking_number IS 'The courier''s own number.';
COMMENT ON TABLE order_notifications IS
    'Which customers have been told what; written after sending, so a crash in between sends again.';
COMMENT ON COLUMN order_notifications.notification_type IS 'Channel and template: email:payment_success.';
