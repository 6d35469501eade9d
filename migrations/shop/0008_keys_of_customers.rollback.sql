-- Fails while two customers use the same key: an order must not lose its key, so change one of them.
ALTER TABLE orders
    DROP CONSTRAINT orders_customer_id_idempotency_key_key,
    ADD CONSTRAINT orders_idempotency_key_key UNIQUE (idempotency_key);
