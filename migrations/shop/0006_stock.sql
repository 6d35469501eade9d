-- What is on the shelves, and for which orders.

-- No foreign key to products: what is no longer for sale may still lie on a shelf.
CREATE TABLE stock (
    sku      text    PRIMARY KEY CHECK (sku <> ''),
    on_hand  integer NOT NULL DEFAULT 0 CHECK (on_hand >= 0),
    reserved integer NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    CHECK (reserved <= on_hand)
) WITH (
    fillfactor = 50 -- the same few rows change with every order: keep their versions in one page
);

INSERT INTO stock (sku) SELECT sku FROM products;

CREATE TABLE order_stock (
    order_id uuid PRIMARY KEY REFERENCES orders (id),
    -- 'new' is seen by nobody but the transaction that is about to change it.
    state    text NOT NULL DEFAULT 'new'
                  CHECK (state IN ('new', 'rejected', 'reserved', 'sold', 'released'))
);

CREATE TABLE reservations (
    id       uuid    PRIMARY KEY,
    order_id uuid    NOT NULL REFERENCES order_stock (order_id),
    sku      text    NOT NULL REFERENCES stock (sku),
    quantity integer NOT NULL CHECK (quantity > 0),
    state    text    NOT NULL DEFAULT 'reserved'
                     CHECK (state IN ('reserved', 'sold', 'released')),
    UNIQUE (order_id, sku)
);

-- Orders from before have taken nothing from these shelves, and give nothing back to them.
INSERT INTO order_stock (order_id, state) SELECT id, 'released' FROM orders;

COMMENT ON TABLE stock IS 'How many pieces there are; an article without a row has none.';
COMMENT ON COLUMN stock.on_hand IS 'Pieces on the shelf, those that are set aside included.';
COMMENT ON COLUMN stock.reserved IS 'How many of them are set aside for orders that are not paid yet.';
COMMENT ON TABLE order_stock IS
    'How an order stands with the stock; whoever changes that locks its row, before those of stock.';
COMMENT ON COLUMN order_stock.state IS
    'released without reservations is a cancellation that came first: nothing is set aside any more.';
COMMENT ON TABLE reservations IS 'What was set aside for an order: all of its articles, or none.';
COMMENT ON COLUMN reservations.quantity IS 'Of all lines of the order with this article.';
COMMENT ON COLUMN reservations.state IS 'That of the order: all of its articles go the same way.';
COMMENT ON TABLE daily_sales IS
    'Money that came in on a day; what is given back of it is in refunds, by a day of its own.';
COMMENT ON COLUMN daily_sales.day IS 'In UTC, by the gateway''s time of the payment.';
COMMENT ON COLUMN daily_sales.orders IS 'How many payments: one for each order, if nobody pays twice.';
