-- The shop: orders and their payments. Money is an integer of the currency's minor unit.

CREATE TABLE orders (
    id              uuid        PRIMARY KEY,
    customer_id     uuid        NOT NULL,
    status          text        NOT NULL DEFAULT 'pending'
                                CHECK (status IN ('pending', 'paid', 'cancelled')),
    currency        char(3)     NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    total_minor     bigint      NOT NULL CHECK (total_minor >= 0),
    idempotency_key text        NOT NULL UNIQUE CHECK (idempotency_key <> ''),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    paid_at         timestamptz,
    CHECK (status <> 'paid' OR paid_at IS NOT NULL)
);

CREATE TABLE order_items (
    order_id         uuid    NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
    line             integer NOT NULL CHECK (line > 0),
    sku              text    NOT NULL CHECK (sku <> ''),
    quantity         integer NOT NULL CHECK (quantity > 0),
    unit_price_minor bigint  NOT NULL CHECK (unit_price_minor >= 0),
    PRIMARY KEY (order_id, line)
);

CREATE TABLE payments (
    id             uuid        PRIMARY KEY,
    event_id       uuid        NOT NULL UNIQUE,
    order_id       uuid        NOT NULL REFERENCES orders (id),
    transaction_id text        NOT NULL UNIQUE CHECK (transaction_id <> ''),
    amount_minor   bigint      NOT NULL CHECK (amount_minor > 0),
    currency       char(3)     NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    received_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    applied_at     timestamptz
);

CREATE INDEX payments_of_order ON payments (order_id);

COMMENT ON TABLE orders IS 'What customers ordered.';
COMMENT ON COLUMN orders.total_minor IS 'Sum of the lines, in the minor unit of currency (cents).';
COMMENT ON COLUMN orders.idempotency_key IS 'From the checkout: a repeated request finds the order it made.';
COMMENT ON COLUMN orders.paid_at IS 'When the payment was applied; stays when a paid order is cancelled.';
COMMENT ON TABLE order_items IS 'The lines of an order, at the prices of that day.';
COMMENT ON COLUMN order_items.line IS 'Place in the order, from 1.';
COMMENT ON COLUMN order_items.unit_price_minor IS 'Price of one, in the minor unit of the order''s currency.';
COMMENT ON TABLE payments IS 'What the payment gateway reported.';
COMMENT ON COLUMN payments.event_id IS 'The event that reported it.';
COMMENT ON COLUMN payments.transaction_id IS 'The gateway''s own number: one payment, however often it is told.';
COMMENT ON COLUMN payments.applied_at IS 'When the order was marked as paid by it.';
