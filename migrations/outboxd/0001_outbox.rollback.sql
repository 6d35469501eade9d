DROP TABLE outbox_events;
DROP TABLE outbox_buckets;
DROP TABLE outbox_relays;
