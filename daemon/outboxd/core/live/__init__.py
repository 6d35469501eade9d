"""What `outboxd check --live` thinks of what AWS and PostgreSQL say: facts, rules, findings."""
