COMMENT ON COLUMN shipments.requested_at IS NULL;
COMMENT ON COLUMN shipments.tracking_number IS 'The courier''s own number.';
COMMENT ON TABLE shipments IS 'Pickups that the courier has confirmed, one for each order.';
DROP INDEX orders_pending;
ALTER TABLE order_items DROP COLUMN name;
-- Fails while an answer of the courier is waited for: without that row the order could be given back
-- although its parcel is under way.
ALTER TABLE shipments DROP COLUMN calls, ALTER COLUMN tracking_number SET NOT NULL;
