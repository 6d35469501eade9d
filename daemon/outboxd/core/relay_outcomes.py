"""What a destination said of an event, and what becomes of the event: closed types and one rule."""

import random
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from outboxd.core.retry import Backoff, Dice

ERROR_BYTES = 2000
"""How much of an error a row keeps."""


class Accepted(msgspec.Struct, frozen=True):
    """The destination has the event."""


class Refused(msgspec.Struct, frozen=True):
    """The destination will never take this event; no retry can help."""

    reason: str


class Faulted(msgspec.Struct, frozen=True):
    """The destination did not take this event, through a fault of its own, while others passed.

    `blameless`: throttled, or denied its key, so that this says nothing of the event and is no
    attempt.
    """

    reason: str
    blameless: bool = False


class Away(msgspec.Struct, frozen=True):
    """The event was not judged: the destination as a whole is away (`paused`), or we did not send,
    as when its bucket has to be given up."""

    paused: bool


EntryResult: TypeAlias = Accepted | Refused | Faulted
"""What a destination says of one entry of a pack."""

DeliveryResult: TypeAlias = EntryResult | Away
"""What became of one event at one of its destinations."""


class Published(msgspec.Struct, frozen=True):
    """Every destination has it."""


class TryAgain(msgspec.Struct, frozen=True):
    """Later, and it counts as attempt number `attempts`."""

    attempts: int
    delay_seconds: float
    error: str


class Bury(msgspec.Struct, frozen=True):
    """The row is dead: it leaves the outbox's work for good, and its successors go on."""

    attempts: int
    error: str


class HoldBack(msgspec.Struct, frozen=True):
    """Later, and nothing is held against the event: when `destination` is back, or else after
    `delay_seconds`."""

    destination: str = ""
    delay_seconds: float = 0.0


Verdict: TypeAlias = Published | TryAgain | Bury | HoldBack

PUBLISHED = Published()


def judge(
    results: Sequence[tuple[str, DeliveryResult]],
    attempts: int,
    max_attempts: int,
    backoff: Backoff,
    dice: Dice = random.random,
) -> Verdict:
    """What becomes of an event that had `attempts` failures before, given what each of its
    destinations said of it.

    A refusal ends it, whatever the others say; a fault counts even while another destination is
    away; only then does the event wait for a destination.
    """
    refusals = [f"{name}: {said.reason}" for name, said in results if isinstance(said, Refused)]
    if refusals:
        return Bury(attempts + 1, clean_error("; ".join(refusals)))
    faults = [said for said in results if isinstance(said[1], Faulted) and not said[1].blameless]
    if faults:
        return _after_fault(faults, attempts + 1, max_attempts, backoff, dice)
    for name, said in results:
        if isinstance(said, Away):
            return HoldBack(destination=name if said.paused else "")
    if any(isinstance(said, Faulted) for _, said in results):
        return HoldBack(delay_seconds=backoff.delay(1, dice))
    return PUBLISHED


def _after_fault(
    faults: Sequence[tuple[str, DeliveryResult]],
    attempts: int,
    max_attempts: int,
    backoff: Backoff,
    dice: Dice,
) -> TryAgain | Bury:
    told = "; ".join(f"{name}: {said.reason}" for name, said in faults if isinstance(said, Faulted))
    if attempts >= max_attempts:
        return Bury(attempts, clean_error(f"given up after {attempts} attempts; {told}"))
    return TryAgain(attempts, backoff.delay(attempts, dice), clean_error(told))


def clean_error(text: str) -> str:
    """An error that a text column takes: no NUL, no lone surrogate, at most ERROR_BYTES bytes.

    One that the column refused would fail the whole batch of marks, again and again.
    """
    storable = text.replace("\0", "\\0").encode(errors="replace")
    return storable[:ERROR_BYTES].decode(errors="ignore")
