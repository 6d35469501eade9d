DROP TABLE outbox_audit;
DROP FUNCTION outbox_audit_refuse_changes();
DROP TABLE inbox_gaps;
DROP TABLE inbox_polls;
