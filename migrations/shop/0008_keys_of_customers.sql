-- An idempotency key is its customer's own: nobody else can take it, or learn that it is taken.
-- An application that still names the old constraint cannot make orders from here on: stop it first.

ALTER TABLE orders
    DROP CONSTRAINT orders_idempotency_key_key,
    ADD CONSTRAINT orders_customer_id_idempotency_key_key UNIQUE (customer_id, idempotency_key);
