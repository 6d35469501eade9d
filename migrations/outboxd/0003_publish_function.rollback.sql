DROP FUNCTION outbox_publish(text, text, text, jsonb, jsonb, uuid, boolean);
