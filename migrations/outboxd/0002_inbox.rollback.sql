DROP TABLE processed_events;
DROP TABLE handler_failures;
DROP TABLE suspects;
