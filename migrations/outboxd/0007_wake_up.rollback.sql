DROP TRIGGER outbox_events_wake_sleepers ON outbox_events;
DROP FUNCTION outbox_wake_sleepers();
DROP TABLE outbox_sleepers;
