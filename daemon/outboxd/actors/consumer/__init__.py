"""The consumer pool: receive, decode, route, run handlers, settle."""

from outboxd.actors.consumer.consumer import Consumer

__all__ = ["Consumer"]
