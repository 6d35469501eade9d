"""What the extender hears of leases that do not last: nothing; of all others, everything."""

import anyio
import pytest

from outboxd.channels.protocol import Address, Hold, Lease, Settled
from outboxd.supervision.fresh_leases import FreshLeases
from tests.consumer.scene import eventually

ONE, OTHER = Address("consumer:orders/1", 1), Address("consumer:orders/2", 1)
NOW = 1000.0


def lease(token: int, received_at: float = NOW, visibility: int = 30) -> Lease:
    return Lease(token, "orders", f"m{token}", f"r{token}", received_at, visibility, NOW + 60)


def fresh(*holds: Hold) -> FreshLeases:
    leases = FreshLeases(lambda: NOW)
    for hold in holds:
        assert leases.took(hold)
    return leases


def test_a_lease_that_is_settled_soon_is_never_told() -> None:
    leases = fresh(Hold(ONE, (lease(1), lease(2))))

    assert leases.settled(Settled(ONE, (1, 2))) is None
    assert leases.take(ONE) is None


def test_of_others_only_what_was_told_before_is_settled() -> None:
    leases = fresh(Hold(ONE, (lease(1),)))
    assert leases.take(ONE) == Hold(ONE, (lease(1),))
    assert leases.took(Hold(ONE, (lease(2),)))

    assert leases.settled(Settled(ONE, (1, 2))) == Settled(ONE, (1,))
    assert leases.settled(Settled(OTHER, (2,))) == Settled(OTHER, (2,))


@pytest.mark.parametrize(("age", "visibility"), [(0, 1), (0.6, 2), (14.6, 30), (40, 30)])
def test_a_lease_that_is_to_be_extended_soon_is_told_at_once(age: float, visibility: int) -> None:
    """A long poll may have used up most of it already."""
    leases = FreshLeases(lambda: NOW)

    assert not leases.took(Hold(ONE, (lease(1), lease(2, NOW - age, visibility))))
    assert leases.take(ONE) is None


@pytest.mark.anyio
async def test_a_lease_that_lasts_is_told_after_a_while() -> None:
    leases = FreshLeases(lambda: NOW)
    told: list[Hold] = []

    async def tell() -> None:
        while True:
            told.extend(await leases.grown())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell)
        await anyio.wait_all_tasks_blocked()
        for owner in (ONE, OTHER):
            leases.took(Hold(owner, (lease(1), lease(2))))
        leases.settled(Settled(ONE, (1,)))
        assert not told
        await eventually(lambda: len(told) == 2)
        tasks.cancel_scope.cancel()
    assert told == [Hold(ONE, (lease(2),)), Hold(OTHER, (lease(1), lease(2)))]
