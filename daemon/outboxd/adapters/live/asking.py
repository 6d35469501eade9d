"""Questions that end: each is answered, or known as unanswered, within a bounded time."""

import threading
from collections.abc import Callable
from typing import TypeVar

from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.live.facts import Unanswered

T = TypeVar("T")

_PASSING = (
    OutageKind.UNREACHABLE,
    OutageKind.TIMEOUT,
    OutageKind.CREDENTIALS,
    OutageKind.THROTTLED,
    OutageKind.SERVER_FAULT,
)
"""Whoever asks the next question would hear the same, and wait as long for it."""


class Asking:
    """Asks one service, until that is away: what is left then is unanswered at once."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._away: Unanswered | None = None
        self.afterwards: Callable[[], object] = _nothing
        """What the thread of a question that took too long does when it ends after all."""

    @property
    def overdue(self) -> bool:
        """Whether a question is still being asked."""
        return self._away is not None and self._away.kind is OutageKind.TIMEOUT

    def __call__(self, what: str, question: Callable[[], T]) -> T | Unanswered:
        """The answer. Only Unavailable says more of why there is none."""
        if self._away is not None:
            return Unanswered(what, self._away.why, self._away.kind)
        try:
            return within(self._seconds, what, question, self.afterwards)
        except Unavailable as error:
            unanswered = Unanswered(what, " ".join(str(error).split()), error.kind)
        except Exception as error:
            # Also what we would call a bug elsewhere: a server that only looks like AWS answers
            # whatever it likes, and a check has to go on to its end.
            unanswered = Unanswered(what, f"{what}: {_words(error)}", OutageKind.OTHER)
        if unanswered.kind in _PASSING:
            self._away = unanswered
        return unanswered


def _nothing() -> None:
    """Nothing has to be cleaned up."""


def within(
    seconds: float, what: str, question: Callable[[], T], afterwards: Callable[[], object]
) -> T:
    """What the question returns or raises; Unavailable if it takes longer, and `afterwards` is
    called when it is done with after all.

    In a thread that nobody waits for at the end: the timeouts of the SDK and of libpq are for each
    packet or address, and name resolution has none.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []
    given_up = threading.Event()

    def ask() -> None:
        try:
            outcome.append(question())
        except BaseException as error:
            failure.append(error)
        if given_up.is_set():
            afterwards()

    thread = threading.Thread(target=ask, name=f"outboxd check: {what}", daemon=True)
    thread.start()
    thread.join(seconds)
    if failure:
        raise failure[0]
    if not outcome:
        given_up.set()
        raise Unavailable(f"{what}: no answer within {seconds:g} s", OutageKind.TIMEOUT)
    return outcome[0]


def _words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
