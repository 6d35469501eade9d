"""outboxd."""
