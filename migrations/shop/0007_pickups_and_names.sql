-- A parcel is known of before the courier is, and an invoice says what the customer has read.

ALTER TABLE shipments
    ALTER COLUMN tracking_number DROP NOT NULL,
    ADD COLUMN calls integer NOT NULL DEFAULT 1 CHECK (calls > 0);

-- Without NOT NULL: checkouts of the version before this one do not store it yet.
ALTER TABLE order_items ADD COLUMN name text CHECK (name <> '');

UPDATE order_items
   SET name = coalesce((SELECT name FROM products WHERE products.sku = order_items.sku), sku);

CREATE INDEX orders_pending ON orders (created_at) WHERE status = 'pending';

COMMENT ON TABLE shipments IS
    'Pickups that the courier was asked for, one for each order; an order with a row is not cancelled.';
COMMENT ON COLUMN shipments.tracking_number IS
    'The courier''s own number; NULL until it has answered: it may have the order, or not.';
COMMENT ON COLUMN shipments.requested_at IS 'When the courier was asked last.';
COMMENT ON COLUMN shipments.calls IS
    'How often the courier was, or was about to be, asked: a refusal of the first says that it has nothing.';
COMMENT ON COLUMN order_items.name IS 'What the catalogue called the article at the checkout.';
