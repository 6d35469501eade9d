-- What is for sale, what the gateway calls its reports, and what has to be given back.

CREATE TABLE products (
    sku         text    PRIMARY KEY CHECK (sku <> ''),
    name        text    NOT NULL CHECK (name <> ''),
    currency    char(3) NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    -- With at most 100 lines of at most 100 pieces no order costs more than events can tell.
    price_minor bigint  NOT NULL CHECK (price_minor BETWEEN 0 AND 100000000)
);

-- The shop opens with these. Prices are changed by UPDATE; orders keep those that they were made at.
INSERT INTO products (sku, name, currency, price_minor)
VALUES ('cleanser-150',   'Gentle Cleanser 150 ml',  'SGD',  890),
       ('serum-30',       'Vitamin C Serum 30 ml',   'SGD', 2450),
       ('moisturizer-50', 'Daily Moisturizer 50 ml', 'SGD', 1890),
       ('sunscreen-50',   'Sunscreen SPF 50, 50 ml', 'SGD', 1590),
       ('lip-balm',       'Lip Balm',                'SGD',  450);

-- No foreign key: payments refer to their orders already, and two tables that refer to each other
-- can be neither filled nor emptied one after the other.
ALTER TABLE orders ADD COLUMN paid_by uuid;

UPDATE orders
   SET paid_by = payments.id
  FROM payments
 WHERE payments.order_id = orders.id
   AND payments.applied_at IS NOT NULL;

ALTER TABLE payments
    ADD COLUMN gateway_event_id text,
    ADD COLUMN paid_at          timestamptz;

UPDATE payments SET gateway_event_id = 'transaction:' || transaction_id, paid_at = received_at;

ALTER TABLE payments
    ALTER COLUMN gateway_event_id SET NOT NULL,
    ALTER COLUMN paid_at SET NOT NULL,
    ADD CONSTRAINT payments_gateway_event_id_key UNIQUE (gateway_event_id),
    ADD CONSTRAINT payments_gateway_event_id_check CHECK (gateway_event_id <> '');

CREATE TABLE refunds (
    payment_id   uuid        PRIMARY KEY REFERENCES payments (id),
    order_id     uuid        NOT NULL REFERENCES orders (id),
    amount_minor bigint      NOT NULL CHECK (amount_minor > 0),
    currency     char(3)     NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    reason       text        NOT NULL CHECK (reason <> ''),
    due_since    timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX refunds_of_order ON refunds (order_id);

COMMENT ON TABLE products IS 'What is for sale, and for how much today.';
COMMENT ON COLUMN products.price_minor IS 'Price of one, in the minor unit of currency (cents).';
COMMENT ON COLUMN orders.paid_by IS 'The payment that paid it; stays when a paid order is cancelled.';
COMMENT ON COLUMN payments.gateway_event_id IS 'The gateway''s own id of its report: one that comes again is known by it.';
COMMENT ON COLUMN payments.paid_at IS 'When the customer paid, by the gateway''s clock.';
COMMENT ON COLUMN payments.applied_at IS 'When what follows from it was started.';
COMMENT ON TABLE refunds IS 'Money that the shop holds and has to give back: of a payment all of it, and once.';
COMMENT ON COLUMN refunds.amount_minor IS 'In the minor unit of currency (cents).';
