COMMENT ON COLUMN daily_sales.orders IS NULL;
COMMENT ON COLUMN daily_sales.day IS 'In UTC, by the time of the event, not of its arrival.';
COMMENT ON TABLE daily_sales IS 'How many orders were made on a day, and what they cost together.';
DROP TABLE reservations;
DROP TABLE order_stock;
DROP TABLE stock;
