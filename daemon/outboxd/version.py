"""The version of outboxd, read by the build and by `outboxd version`."""

__version__ = "0.1.0"
