DROP TABLE refunds;
ALTER TABLE payments DROP COLUMN paid_at, DROP COLUMN gateway_event_id;
COMMENT ON COLUMN payments.applied_at IS 'When the order was marked as paid by it.';
ALTER TABLE orders DROP COLUMN paid_by;
DROP TABLE products;
