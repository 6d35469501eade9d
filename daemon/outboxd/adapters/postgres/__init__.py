"""PostgreSQL behind the ports."""
