"""SNS: topics that fan out to the queues of this server, behind the query protocol."""
