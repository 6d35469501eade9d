"""The daemon's log: structured lines on standard output, redacted, repeats counted."""

from outboxd.adapters.logging.configuring import Log, configure_logging

__all__ = ["Log", "configure_logging"]
