"""Asks AWS and PostgreSQL how things are, and changes nothing."""
