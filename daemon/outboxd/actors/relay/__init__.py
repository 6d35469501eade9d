"""The relay, one file for each of its concerns."""

from outboxd.actors.relay.relay import Relay

__all__ = ["Relay"]
