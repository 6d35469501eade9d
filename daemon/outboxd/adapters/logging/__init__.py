"""The daemon's log: structured lines on standard output, redacted, repeats counted."""

from outboxd.adapters.logging.configuring import configure_logging

__all__ = ["configure_logging"]
