import anyio
import pytest

from outboxd.channels.protocol import (
    NO_ANSWER,
    Forget,
    Forgotten,
    LeaseLost,
    OwnerGone,
    Settled,
)
from outboxd.core.clock import boottime
from outboxd.core.errors import OutageKind
from outboxd.ports.visibility import Failed, Lost
from tests.extender.scene import NEIGHBOUR, POOL, ScriptedSqs, a_lease, extending


class Clock:
    """Stands until the test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_leases_below_half_of_their_timeout_are_extended_in_batches_of_ten() -> None:
    sqs = ScriptedSqs()
    async with extending(sqs) as scene:
        leases = [a_lease(f"h{n}", left=10 + n / 10) for n in range(12)]
        await scene.hold(*leases, a_lease("fresh", left=29))
        await sqs.until(lambda: len(sqs.asked()) == 12)

        assert [len(entries) for _, entries in sqs.calls] == [10, 2]
        assert sqs.asked() == [(f"h{n}", 30) for n in range(12)], "the most urgent first"


async def test_what_was_extended_is_counted() -> None:
    sqs = ScriptedSqs()
    sqs.answers["refused"] = [Lost("ReceiptHandleIsInvalid")]
    sqs.answers["flaky"] = [Failed("InternalError")]
    async with extending(sqs) as scene:
        await scene.hold(a_lease("good"), a_lease("refused"), a_lease("flaky"))
        await scene.heard()
        await sqs.until(lambda: len(sqs.asked()) == 4)
        last = a_lease("last")
        await scene.hold(last)
        await sqs.until(lambda: len(sqs.asked()) == 5)
        await scene.tell(Forget(POOL, (last.token,), 1))
        assert await scene.heard() == Forgotten(POOL, 1)

        def extensions(result: str) -> float | None:
            return scene.metric("visibility_extensions_total", queue="orders", result=result)

        assert (extensions("ok"), extensions("lost"), extensions("error")) == (3, 1, 1)
        assert scene.metric("visibility_lost_total", queue="orders") == 1
        assert scene.metric("visibility_slack_seconds_count", queue="orders") == 3
        assert scene.metric("visibility_tracked_messages", queue="orders") == 2
        assert scene.metric("visibility_tracked_messages", queue="mails") == 0
        assert scene.progress.last_receive_at is not None


async def test_a_deadline_is_counted_from_before_the_call() -> None:
    clock = Clock()
    sqs = ScriptedSqs()

    def ten_seconds() -> None:
        clock.now += 10

    sqs.during_call = ten_seconds
    async with extending(sqs, clock=clock) as scene:
        await scene.hold(a_lease("a", left=14, now=clock.now))
        await sqs.until(lambda: len(sqs.calls) == 1)
        sqs.during_call = lambda: None
        clock.now = 1000 + 15.1  # below half of 30 s since the call began, not since it returned
        await scene.nudge()
        await sqs.until(lambda: len(sqs.calls) == 2)


@pytest.mark.parametrize(
    "kind", [OutageKind.THROTTLED, OutageKind.SERVER_FAULT, OutageKind.TIMEOUT, OutageKind.DENIED]
)
async def test_a_failing_call_is_tried_again_and_never_ends_the_extending(kind: OutageKind) -> None:
    sqs = ScriptedSqs()
    sqs.outages["orders"] = [kind] * 5
    async with extending(sqs) as scene:
        await scene.hold(a_lease("a"), a_lease("b"))
        await sqs.until(lambda: len(sqs.calls) == 6)

    assert sqs.calls == [("orders", {"a": 30, "b": 30})] * 6, "a batch stays a batch"


async def test_only_the_failed_entries_of_a_batch_are_tried_again() -> None:
    sqs = ScriptedSqs()
    sqs.answers["b"] = [Failed("InternalError"), Failed("unconfirmed")]
    async with extending(sqs) as scene:
        await scene.hold(a_lease("a"), a_lease("b"))
        await sqs.until(lambda: len(sqs.calls) == 3)

    assert sqs.asked() == [("a", 30), ("b", 30), ("b", 30), ("b", 30)]


async def test_a_lost_lease_is_told_to_its_owner() -> None:
    sqs = ScriptedSqs()
    sqs.answers["b"] = [Lost("ReceiptHandleIsInvalid")]
    async with extending(sqs) as scene:
        mine, theirs = a_lease("a"), a_lease("b")
        await scene.hold(mine)
        await scene.hold(theirs, owner=NEIGHBOUR)

        assert await scene.heard() == LeaseLost(NEIGHBOUR, (theirs.token,))


async def test_a_message_deleted_while_it_was_being_extended_is_not_lost() -> None:
    """A delete does not wait for the extender, so SQS may hear of it before the extender does."""
    sqs = ScriptedSqs()
    sqs.answers["deleted"] = [Lost("ReceiptHandleIsInvalid")]
    sqs.answers["lost"] = [Lost("ReceiptHandleIsInvalid")]
    async with extending(sqs) as scene:
        deleted, lost = a_lease("deleted"), a_lease("lost")
        await scene.hold(deleted, lost)
        await sqs.until(lambda: len(sqs.asked()) == 2)
        await scene.tell(Settled(POOL, (deleted.token,)))

        assert await scene.heard() == LeaseLost(POOL, (lost.token,))
        assert scene.metric("visibility_lost_total", queue="orders") == 1
        refused = scene.metric("visibility_extensions_total", queue="orders", result="lost")
        assert refused == 1


async def test_a_lease_that_could_not_be_extended_in_time_is_told_as_lost() -> None:
    sqs = ScriptedSqs()
    sqs.outages["orders"] = [OutageKind.UNREACHABLE] * 1000
    async with extending(sqs) as scene:
        lease = a_lease("a", left=0.3)
        await scene.hold(lease)

        assert await scene.heard() == LeaseLost(POOL, (lease.token,))
        assert scene.metric("visibility_lost_total", queue="orders") == 1


async def test_a_lease_is_not_extended_beyond_its_permitted_time() -> None:
    clock = Clock()
    sqs = ScriptedSqs()
    async with extending(sqs, clock=clock) as scene:
        await scene.hold(
            a_lease("spent", left=10, permitted=10, now=clock.now),
            a_lease("short", left=10, permitted=12.5, now=clock.now),
            a_lease("long", left=10, now=clock.now),
        )
        await sqs.until(lambda: len(sqs.asked()) == 2)
        assert sqs.asked() == [("short", 13), ("long", 30)]
        assert scene.metric("visibility_extensions_total", queue="orders", result="limit") == 1


async def test_a_hanging_queue_does_not_delay_another() -> None:
    sqs = ScriptedSqs()
    sqs.hanging["orders"] = anyio.Event()
    async with extending(sqs) as scene:
        await scene.hold(*(a_lease(f"o{n}") for n in range(100)))
        await scene.hold(*(a_lease(f"m{n}", queue="mails") for n in range(30)))
        await sqs.until(lambda: len(sqs.asked("mails")) == 30)

        assert len(sqs.asked("orders")) == 20, "two calls of ten hang, no more"
        assert scene.progress.in_flight == 2
        assert scene.progress.oldest_started_at is not None
        sqs.hanging.pop("orders").set()
        await sqs.until(lambda: len(sqs.asked("orders")) == 100)


async def test_forgetting_is_answered_at_once_when_no_call_is_on_its_way() -> None:
    sqs = ScriptedSqs()
    async with extending(sqs) as scene:
        lease = a_lease("a", left=29)
        await scene.hold(lease)
        await scene.tell(Forget(POOL, (lease.token,), 7))

        assert await scene.heard() == Forgotten(POOL, 7)
        assert scene.metric("visibility_tracked_messages", queue="orders") == 0


async def test_forgetting_is_answered_only_when_the_call_on_its_way_has_returned() -> None:
    sqs = ScriptedSqs()
    hanging = sqs.hanging["orders"] = anyio.Event()
    async with extending(sqs) as scene:
        flying, resting = a_lease("a"), a_lease("b", left=29)
        await scene.hold(flying, resting)
        await sqs.until(lambda: len(sqs.calls) == 1)
        await scene.tell(Forget(POOL, (flying.token, resting.token), 1))
        await scene.tell(Forget(POOL, (resting.token,), 2))

        assert await scene.heard() == Forgotten(POOL, 2), "that one has nothing to wait for"
        hanging.set()
        assert await scene.heard() == Forgotten(POOL, 1)


async def test_a_replayed_forget_is_obeyed_and_not_answered() -> None:
    sqs = ScriptedSqs()
    async with extending(sqs) as scene:
        tombstone, held = a_lease("a", left=29), a_lease("b", left=29)
        await scene.hold(tombstone, held)
        await scene.tell(Forget(POOL, (tombstone.token,), NO_ANSWER))
        await scene.tell(Forget(POOL, (held.token,), 1))

        assert await scene.heard() == Forgotten(POOL, 1)


async def test_a_dead_owners_leases_and_tombstones_are_given_back_at_once() -> None:
    sqs = ScriptedSqs()
    async with extending(sqs) as scene:
        held, tombstone, settled = (a_lease(handle, left=29) for handle in "abc")
        kept = a_lease("kept", left=29)
        await scene.hold(held, tombstone, settled)
        await scene.hold(kept, owner=NEIGHBOUR)
        await scene.tell(Forget(POOL, (tombstone.token, settled.token), NO_ANSWER))
        await scene.tell(Settled(POOL, (settled.token,)))
        await scene.tell(OwnerGone(POOL, "signal"))

        assert await scene.heard() == Settled(POOL, (held.token, tombstone.token))
        assert sqs.calls == [("orders", {"a": 0, "b": 0})]
        returns = scene.metric("visibility_returns_total", queue="orders", result="ok")
        assert returns == 2


async def test_many_leases_are_given_back_in_batches_and_failures_are_tried_again() -> None:
    sqs = ScriptedSqs()
    sqs.outages["orders"] = [OutageKind.THROTTLED]
    sqs.answers["h3"] = [Failed("InternalError")]
    sqs.answers["h4"] = [Lost("ReceiptHandleIsInvalid")]  # somebody else has it: nothing to do
    async with extending(sqs) as scene:
        leases = [a_lease(f"h{n}", left=29) for n in range(25)]
        await scene.hold(*leases)
        await scene.tell(OwnerGone(POOL, "signal"))
        over: set[int] = set()
        while len(over) < 25:
            settled = await scene.heard()
            assert isinstance(settled, Settled)
            over |= set(settled.tokens)

    assert {seconds for _, seconds in sqs.asked()} == {0}
    assert over == {lease.token for lease in leases}


async def test_giving_back_waits_for_an_extension_that_is_on_its_way() -> None:
    sqs = ScriptedSqs()
    hanging = sqs.hanging["orders"] = anyio.Event()
    async with extending(sqs) as scene:
        lease = a_lease("a")
        await scene.hold(lease)
        await sqs.until(lambda: len(sqs.calls) == 1)
        await scene.tell(OwnerGone(POOL, "signal"))
        await scene.tell(Forget(NEIGHBOUR, (), 1))
        assert await scene.heard() == Forgotten(NEIGHBOUR, 1)
        assert len(sqs.calls) == 1

        hanging.set()
        assert await scene.heard() == Settled(POOL, (lease.token,))
        assert sqs.asked() == [("a", 30), ("a", 0)]


async def test_a_late_hold_of_a_dead_owner_is_refused_and_its_successors_is_not() -> None:
    sqs = ScriptedSqs()
    async with extending(sqs) as scene:
        late, fresh = a_lease("late"), a_lease("fresh")
        await scene.tell(OwnerGone(POOL, "signal"))
        await scene.hold(late)
        assert await scene.heard() == Settled(POOL, (late.token,))

        await scene.hold(fresh, owner=type(POOL)(POOL.name, 2))
        await sqs.until(lambda: bool(sqs.calls))
        assert sqs.asked() == [("fresh", 30)]


async def test_a_replay_of_what_an_earlier_extender_kept_alive_is_extended_at_once() -> None:
    sqs = ScriptedSqs()
    sqs.answers["gone"] = [Lost("ReceiptHandleIsInvalid")]
    async with extending(sqs) as scene:
        gone = a_lease("gone", left=-500)
        await scene.hold(a_lease("kept", left=-500), gone)

        assert await scene.heard() == LeaseLost(POOL, (gone.token,))
        assert sqs.asked() == [("kept", 30), ("gone", 30)]


async def test_a_drain_finishes_giving_back_and_returns() -> None:
    sqs = ScriptedSqs()
    sqs.outages["orders"] = [OutageKind.THROTTLED] * 3
    async with extending(sqs) as scene:
        lease = a_lease("a", left=29)
        await scene.hold(lease)
        await scene.tell(OwnerGone(POOL, "planned"))
        await scene.drain()

        assert len(sqs.calls) == 4
        assert await scene.heard() == Settled(POOL, (lease.token,)), "said before the end"


async def test_a_drain_waits_for_the_news_that_an_owner_is_gone() -> None:
    sqs = ScriptedSqs()
    async with extending(sqs) as scene, anyio.create_task_group() as tasks:
        await scene.hold(a_lease("a", left=29))
        tasks.start_soon(scene.drain)
        await anyio.wait_all_tasks_blocked()
        assert not scene.ended.is_set()

        await scene.tell(OwnerGone(POOL, "planned"))
        await scene.ended.wait()
        assert sqs.asked() == [("a", 0)]


async def test_an_idle_extender_drains_at_once() -> None:
    async with extending(ScriptedSqs()) as scene:
        await scene.drain()


async def test_a_drain_ends_at_its_deadline_even_if_sqs_hangs() -> None:
    sqs = ScriptedSqs()
    sqs.hanging["orders"] = anyio.Event()
    async with extending(sqs) as scene:
        await scene.hold(a_lease("a"))
        await sqs.until(lambda: len(sqs.calls) == 1)
        await scene.drain(seconds=0.05)


async def test_without_a_supervisor_it_finishes_giving_back_and_ends() -> None:
    sqs = ScriptedSqs()
    async with extending(sqs) as scene:
        await scene.hold(a_lease("a", left=29))
        await scene.tell(OwnerGone(POOL, "signal"))
        scene.hang_up()
        with anyio.fail_after(20):
            await scene.ended.wait()

    assert sqs.asked() == [("a", 0)]


async def test_an_extender_whose_supervisor_does_not_listen_goes_on_extending() -> None:
    sqs = ScriptedSqs()
    async with extending(sqs) as scene:
        for correlation in range(1, 1000):  # more answers than the mailbox holds
            await scene.tell(Forget(POOL, (), correlation))
        await scene.hold(a_lease("a"))
        await sqs.until(lambda: len(sqs.calls) == 1)


async def test_an_idle_extender_sleeps_until_something_is_due() -> None:
    looks = 0

    def counting() -> float:
        nonlocal looks
        looks += 1
        return boottime()

    async with extending(ScriptedSqs(), clock=counting) as scene:
        await scene.hold(a_lease("a", left=29))
        await scene.tell(Forget(NEIGHBOUR, (), 1))
        await scene.heard()
        before = looks
        await anyio.sleep(0.3)  # nothing happens, and nobody looks whether it does
        assert looks == before
