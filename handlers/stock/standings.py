"""How an order stands with the stock, and what an event makes of that: decided from what is known,
in whatever order it comes to be known."""

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias, assert_never

from msgspec import Struct


class Standing(Enum):
    """Of a whole order: all of its articles go the same way."""

    NEW = "new"
    """Nothing is known of it yet."""

    REJECTED = "rejected"
    """There was too little when it came; whatever the warehouse gets later, it stays so until
    somebody asks to reconsider."""

    RESERVED = "reserved"
    SOLD = "sold"

    RELEASED = "released"
    """Cancelled, and so the end; also of an order that had nothing set aside yet."""


class Move(Struct, frozen=True, kw_only=True):
    """The order's new standing, and what each piece of it changes in the stock's counters."""

    to: Standing
    on_hand: int = 0
    reserved: int = 0


class Keep(Struct, frozen=True):
    """Nothing changes: it happened before, or the order is cancelled."""


class Choose(Struct, frozen=True):
    """Set aside all of it or reject it, by what the shelves have."""


class Wait(Struct, frozen=True):
    """What has to come first has not come yet."""


class PaidInVain(Struct, frozen=True):
    """The money is there, and the goods are not."""


OnCreated: TypeAlias = Choose | Keep
OnCancelled: TypeAlias = Move | Keep
OnPaid: TypeAlias = Move | Keep | Wait | PaidInVain

SET_ASIDE = Move(to=Standing.RESERVED, reserved=1)
REJECT = Move(to=Standing.REJECTED)
SELL = Move(to=Standing.SOLD, on_hand=-1, reserved=-1)
CLOSE = Move(to=Standing.RELEASED)
UNRESERVE = Move(to=Standing.RELEASED, reserved=-1)
TAKE_BACK = Move(to=Standing.RELEASED, on_hand=1)


class Shortage(Struct, frozen=True):
    """An article of which the order wants more than there is."""

    sku: str
    wanted: int
    available: int


def on_created(standing: Standing) -> OnCreated:
    """What becomes of an order that was made."""
    match standing:
        case Standing.NEW:
            return Choose()
        case Standing.REJECTED | Standing.RESERVED | Standing.SOLD | Standing.RELEASED:
            return Keep()
        case _:
            assert_never(standing)


def on_cancelled(standing: Standing) -> OnCancelled:
    """What becomes of an order that was cancelled."""
    match standing:
        case Standing.NEW | Standing.REJECTED:
            return CLOSE
        case Standing.RESERVED:
            return UNRESERVE
        case Standing.SOLD:
            return TAKE_BACK
        case Standing.RELEASED:
            return Keep()
        case _:
            assert_never(standing)


def on_paid(standing: Standing) -> OnPaid:
    """What becomes of an order that was paid."""
    match standing:
        case Standing.NEW:
            return Wait()
        case Standing.REJECTED:
            return PaidInVain()
        case Standing.RESERVED:
            return SELL
        case Standing.SOLD | Standing.RELEASED:
            return Keep()
        case _:
            assert_never(standing)


def shortage(wanted: Mapping[str, int], available: Mapping[str, int]) -> Shortage | None:
    """The first article, by sku, of which there is too little; one without a row has none."""
    for sku, quantity in sorted(wanted.items()):
        there = available.get(sku, 0)
        if there < quantity:
            return Shortage(sku, quantity, there)
    return None
