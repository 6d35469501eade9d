"""From what happened in one call of a handler to what becomes of its message."""

import math
import random
from enum import StrEnum
from typing import TypeAlias, assert_never

import msgspec

from outboxd.core.errors import Reject, RetryLater
from outboxd.core.outcomes import DeadLetter, DeadReason, Done, Outcome, Retry
from outboxd.core.retry import Backoff, Dice

LONGEST_ERROR = 1000
"""Characters kept of an error's text."""

LONGEST_DELAY_SECONDS = 43_200.0
"""Twelve hours: SQS hides a message no longer than that after its receive."""

CRASHES_ALONE = 2
"""Once may be a coincidence: an operator's kill, or a machine without memory."""

_CALL_AGAIN_SECONDS = (5.0, 10.0)
"""Between these a message comes back whose handler was not to blame."""


class RetryCause(StrEnum):
    """Why a message is given back; a closed set, so that it may be a metric's label."""

    ERROR = "error"
    TIMEOUT = "timeout"
    REQUESTED = "requested"
    BUSY = "busy"
    DATABASE = "database"
    UNKNOWN_TYPE = "unknown_type"
    BUG = "bug"


class Returned(msgspec.Struct, frozen=True):
    """The handler said itself what is to become of the message, or did not have to be called."""

    outcome: Outcome


class Raised(msgspec.Struct, frozen=True):
    """The handler failed: an exception of any kind, or a return value that means nothing.

    `sqlstate` is PostgreSQL's code for the error, if that is where it came from.
    """

    error: str
    sqlstate: str | None = None


class TimedOut(msgspec.Struct, frozen=True):
    """The handler took longer than it may."""

    seconds: float


class Busy(msgspec.Struct, frozen=True):
    """A copy of the same event is in this handler's hands elsewhere, and not yet committed."""


class Away(msgspec.Struct, frozen=True):
    """The database was lost before the commit was confirmed; the handler is not to blame."""

    error: str


Ending: TypeAlias = Returned | Raised | TimedOut | Busy | Away


class Judgement(msgspec.Struct, frozen=True):
    """What becomes of the message as far as one handler is concerned; `cause` explains a Retry."""

    outcome: Outcome
    cause: RetryCause | None = None


class Patience(msgspec.Struct, frozen=True):
    """How often a handler is tried, and how long to wait in between."""

    max_attempts: int
    backoff: Backoff


def said(value: object, handler: str) -> Ending:
    """The ending of a handler that returned `value`."""
    match value:
        case None:
            return Returned(Done())
        case Done() | Retry(after_seconds=int() | float(), error=str()):
            return Returned(value)
        case DeadLetter(reason=DeadReason(), error=str()):
            return Returned(value)
        case Retry() | DeadLetter():
            # Structs are checked when decoded, not when made: DeadLetter("why") is easily written.
            return Raised(f"handler {handler} returned {value!r}; its fields have other types")
        case _:
            return Raised(
                f"handler {handler} returned {type(value).__name__!r}; "
                "return None, Done, Retry or DeadLetter"
            )


def raised(error: BaseException) -> Ending:
    """The ending of a handler that raised `error`, alone or as the only one of its group."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    match error:
        case Reject():
            return Returned(DeadLetter(DeadReason.REJECTED, describe(error)))
        case RetryLater(after_seconds=int() | float() as seconds):
            return Returned(Retry(seconds, describe(error)))
        case _:
            return Raised(describe(error), getattr(error, "sqlstate", None))


def spent(ending: Ending) -> str | None:
    """The error to count as a failed attempt; None if the handler is not to blame for anything."""
    match ending:
        case Returned(outcome=Retry(error=error) | DeadLetter(error=error)):
            return clean(error)
        case Raised(error=error):
            return clean(error)
        case TimedOut(seconds=seconds):
            return f"timed out after {seconds:g} s"
        case Returned() | Busy() | Away():
            return None
        case _:
            assert_never(ending)


def judge(
    ending: Ending, attempts: int, patience: Patience, dice: Dice = random.random
) -> Judgement:
    """What becomes of the message; `attempts` counts the failed ones, this one included."""
    match ending:
        case Returned(outcome=outcome):
            return _as_said(outcome, attempts, patience, dice)
        case Raised(error=error):
            verdict = DeadLetter(DeadReason.MAX_ATTEMPTS, clean(error))
            return _again_or(verdict, RetryCause.ERROR, attempts, patience, dice)
        case TimedOut(seconds=seconds):
            verdict = DeadLetter(DeadReason.TIMEOUT, f"timed out after {seconds:g} s")
            return _again_or(verdict, RetryCause.TIMEOUT, attempts, patience, dice)
        case Busy():
            return Judgement(call_again("another copy is being handled", dice), RetryCause.BUSY)
        case Away(error=error):
            return Judgement(call_again(clean(error), dice), RetryCause.DATABASE)
        case _:
            assert_never(ending)


def _as_said(outcome: Outcome, attempts: int, patience: Patience, dice: Dice) -> Judgement:
    match outcome:
        case Done():
            return Judgement(outcome)
        case DeadLetter(reason=reason, error=error):
            return Judgement(DeadLetter(reason, clean(error)))
        case Retry(error=error) if attempts >= patience.max_attempts:
            return Judgement(DeadLetter(DeadReason.MAX_ATTEMPTS, clean(error)))
        case Retry(after_seconds=seconds, error=error):
            delay = _delay(seconds, attempts, patience, dice)
            return Judgement(Retry(delay, clean(error)), RetryCause.REQUESTED)
        case _:
            assert_never(outcome)


def _again_or(
    verdict: DeadLetter, cause: RetryCause, attempts: int, patience: Patience, dice: Dice
) -> Judgement:
    if attempts >= patience.max_attempts:
        return Judgement(verdict)
    return Judgement(Retry(patience.backoff.delay(attempts, dice), verdict.error), cause)


def judge_unknown_type(
    receive_count: int, patience: Patience, dice: Dice = random.random
) -> Judgement:
    """What becomes of a message whose type no handler is for, when such are to be retried.

    Receives serve as attempts: there is no handler under whose name to count.
    """
    error = "no handler is registered for this event type"
    if receive_count >= patience.max_attempts:
        return Judgement(DeadLetter(DeadReason.UNKNOWN_TYPE, error))
    delay = patience.backoff.delay(receive_count, dice)
    return Judgement(Retry(delay, error), RetryCause.UNKNOWN_TYPE)


def crash_verdict(crashes_alone: int, reason: str) -> DeadLetter | None:
    """What to do with a message whose process died so often while nothing else was in its hands;
    None if it is to run again, alone."""
    if crashes_alone < CRASHES_ALONE:
        return None
    return DeadLetter(
        DeadReason.CRASH,
        f"its process died {crashes_alone} times while this message was handled alone in it; "
        f"the last time: {clean(reason)}",
    )


def call_again(error: str, dice: Dice = random.random) -> Retry:
    """Soon, but not at once, and at no handler's expense."""
    shortest, longest = _CALL_AGAIN_SECONDS
    return Retry(shortest + (longest - shortest) * dice(), error)


def describe(error: BaseException) -> str:
    """The exception as a person reads it in the dead-letter queue."""
    try:
        text = str(error)
    except Exception:  # an exception's own __str__ may fail, and must not hide the failure
        text = "(its text could not be made)"
    return clean(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def clean(text: str) -> str:
    """The text as PostgreSQL and SQS can store it: no NUL, no lone surrogates, not endless."""
    storable = text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return storable if len(storable) <= LONGEST_ERROR else storable[: LONGEST_ERROR - 1] + "…"


def _delay(seconds: float, attempts: int, patience: Patience, dice: Dice) -> float:
    """What a handler asked for, as far as SQS can grant it."""
    if not math.isfinite(seconds):
        return patience.backoff.delay(attempts, dice)
    return min(max(seconds, 0.0), LONGEST_DELAY_SECONDS)
