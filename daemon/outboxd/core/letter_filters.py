"""Which letters of a dead-letter queue a person asks for."""

from collections.abc import Collection
from fnmatch import fnmatchcase

import msgspec

from outboxd.core.redrive import Entry


class Selection(msgspec.Struct, frozen=True, omit_defaults=True):
    """The letters that fulfil every condition; an empty one, or None, is no condition.

    Of the values of one condition a letter has to have any. `types` are globs; `since` and `until`
    are Unix times of when SQS took the letter in, which its age is counted from. `sources` are the
    SQS queues that the messages were in: queues may share a dead-letter queue, and a message that
    is sent to another one than its own would be lost to its handlers.
    """

    ids: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    handlers: frozenset[str] = frozenset()
    since: float | None = None
    until: float | None = None
    sources: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        ids: Collection[str] = (),
        reasons: Collection[str] = (),
        types: Collection[str] = (),
        handlers: Collection[str] = (),
        since: float | None = None,
        until: float | None = None,
        sources: Collection[str] = (),
    ) -> "Selection":
        """From what was given on a command line."""
        return cls(
            frozenset(each.lower() for each in ids),
            frozenset(reasons),
            frozenset(types),
            frozenset(handlers),
            since,
            until,
            frozenset(sources),
        )

    @property
    def narrows(self) -> bool:
        """Whether there may be letters of its sources that are not wanted."""
        return self != Selection(sources=self.sources)

    def wants(self, entry: Entry) -> bool:
        """Whether all conditions hold."""
        facts = entry.facts
        return (
            (not self.ids or not self.ids.isdisjoint(entry.ids))
            and (not self.reasons or facts.reason in self.reasons)
            and (not self.types or self._is_of_type(facts.event_type))
            and (not self.handlers or any(h.name in self.handlers for h in facts.handlers))
            and self._is_in_time(entry.message.sent_at)
            and not self.is_elsewhere(entry)
        )

    def is_elsewhere(self, entry: Entry) -> bool:
        """Whether it is known to be of another queue. A letter of which that is not known, such as
        one that SNS could not deliver, may be anybody's."""
        source = entry.source_queue
        return bool(self.sources) and source is not None and source not in self.sources

    def _is_of_type(self, event_type: str | None) -> bool:
        """A letter whose type nobody knows is of none, not of any."""
        return event_type is not None and any(fnmatchcase(event_type, glob) for glob in self.types)

    def _is_in_time(self, sent_at: float) -> bool:
        return (self.since is None or sent_at >= self.since) and (
            self.until is None or sent_at <= self.until
        )
