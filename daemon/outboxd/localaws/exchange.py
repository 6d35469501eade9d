"""What passes between a connection and the services: an answer now, or one still to come."""

from collections.abc import Callable
from typing import Protocol

from outboxd.localaws.http1 import Answer


class Hangup:
    """Instead of an answer, the connection is cut."""


Outcome = Answer | Hangup


class Client(Protocol):
    """Who asked."""

    def gone(self) -> bool:
        """Whether the client is known to have hung up, as of this very moment."""


class Pending:
    """An outcome still to come: a long poll, or a call that a fault holds back.

    Ends once, in one of two ways: `finish` hands the outcome to the connection, or `abandon` tells
    whoever works on it that nobody is there any more to take it.
    """

    def __init__(self, on_abandon: Callable[[], None]) -> None:
        self._on_abandon = on_abandon
        self._take: Callable[[Outcome], None] | None = None
        self._outcome: Outcome | None = None
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    def then(self, take: Callable[[Outcome], None]) -> None:
        """Have `take` called with the outcome; at once if it is there already."""
        if self._outcome is not None:
            take(self._outcome)
        else:
            self._take = take

    def finish(self, outcome: Outcome) -> None:
        if self._ended:
            return
        self._ended = True
        self._outcome = outcome
        if self._take is not None:
            self._take(outcome)

    def abandon(self) -> None:
        if not self._ended:
            self._ended = True
            self._on_abandon()


Reply = Answer | Pending


def mapped(reply: Reply, change: Callable[[Answer], Answer]) -> Reply:
    """The same reply with its answer changed, now or once it is there."""
    if isinstance(reply, Answer):
        return change(reply)

    def arrive(outcome: Outcome) -> None:
        later.finish(change(outcome) if isinstance(outcome, Answer) else outcome)

    later = Pending(reply.abandon)
    reply.then(arrive)
    return later
