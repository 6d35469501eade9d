"""When a relay lies down, sleeps and gets up: the decisions alone, with a clock that is set."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import anyio
import pytest

from outboxd.actors.relay import waking
from outboxd.actors.relay.surroundings import Surroundings
from outboxd.actors.relay.waking import AWAKE_SECONDS, ONE_MORE_LOOK_SECONDS, RESTING_SECONDS
from outboxd.core.errors import Unavailable
from outboxd.core.settings import RelaySettings
from tests.relay.scene import Facts, eventually

ME = UUID(int=1)
SLEEP = 30.0
SETTINGS = RelaySettings(wake_up=True, sleep_max_seconds=SLEEP)


class FakeWakeUps:
    """Producers and transactions as the test says."""

    def __init__(self) -> None:
        self.asleep: set[UUID] = set()
        self.next_transaction = 100
        self.open = 100
        self.fails = False
        self.hangs = False
        self.echoes = True
        self.known = True
        self.listeners = 0
        self._send, self._receive = anyio.create_memory_object_stream[str](100)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[AsyncIterator[str]]:
        self.listeners += 1
        yield self._notifications()

    async def _notifications(self) -> AsyncIterator[str]:
        async for sender in self._receive:
            if sender == "lost":
                raise Unavailable("connection lost")
            yield sender

    def notify(self, sender: str = "") -> None:
        self._send.send_nowait(sender)

    async def declare(self, relay: UUID) -> int:
        await self._work()
        self.asleep.add(relay)
        if self.echoes:
            self.notify(str(relay))
        return self.next_transaction

    async def oldest_open(self) -> int:
        await self._work()
        return self.open

    async def renew(self, relay: UUID) -> bool:
        await self._work()
        if self.echoes:
            self.notify(str(relay))
        return self.known

    async def withdraw(self, relay: UUID) -> None:
        await self._work()
        self.asleep.discard(relay)

    async def _work(self) -> None:
        if self.hangs:
            await anyio.sleep_forever()
        if self.fails:
            raise Unavailable("the server is away")

    def close(self) -> None:
        self._send.close()
        self._receive.close()


class Bed:
    """A Waking that listens, and a reader that finds nothing."""

    def __init__(self) -> None:
        self.wake_ups = FakeWakeUps()
        self.facts = Facts()
        self.now = 1000.0
        self.read_at_once = 0
        around = Surroundings(self.facts, lambda: self.now, lambda: 0.0)
        self.waking = waking.Waking(self.wake_ups, ME, SETTINGS, self._read_now, around)

    def _read_now(self) -> None:
        self.read_at_once += 1

    async def reads(self, delay: float = 1.0, *, quiet: bool = True) -> float:
        """A read has ended; how long is it until the next?"""
        await anyio.wait_all_tasks_blocked()  # what was notified is heard
        return await self.waking.after_read(delay, quiet=quiet)

    async def lie_down(self) -> None:
        assert [await self.reads() for _ in range(4)] == [0.0, ONE_MORE_LOOK_SECONDS, 0.0, SLEEP]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.waking.run)
            await eventually(lambda: self.read_at_once == 1)
            yield
            tasks.cancel_scope.cancel()
        self.wake_ups.close()


async def test_an_idle_relay_is_known_as_asleep_and_reads_three_times_before_it_sleeps() -> None:
    bed = Bed()
    async with bed.listening():
        assert await bed.reads(0.04) == 0.04
        await bed.lie_down()
        assert await bed.reads() == SLEEP
        assert bed.wake_ups.asleep == {ME}


async def test_it_does_not_sleep_before_every_older_transaction_has_ended() -> None:
    bed = Bed()
    bed.wake_ups.open = 99
    async with bed.listening():
        assert await bed.reads() == 0.0
        assert await bed.reads() == ONE_MORE_LOOK_SECONDS
        assert [await bed.reads() for _ in range(5)] == [1.0] * 5
        bed.wake_ups.open = 100
        # The read that finds what they have left comes after it is known that they have ended.
        assert await bed.reads() == 0.0
        assert await bed.reads() == SLEEP


async def test_a_producer_wakes_it_and_it_lies_down_again_a_second_later() -> None:
    bed = Bed()
    async with bed.listening():
        await bed.lie_down()
        bed.wake_ups.notify()
        bed.wake_ups.notify()
        await eventually(lambda: bed.read_at_once == 2)
        assert await bed.reads(0.02) == 0.02
        assert bed.wake_ups.asleep == set()
        assert bed.facts.count("woken") == 1
        assert await bed.reads() == 1.0
        bed.now += AWAKE_SECONDS
        await bed.lie_down()


async def test_work_that_no_producer_brought_gets_it_up_as_well() -> None:
    bed = Bed()
    async with bed.listening():
        await bed.lie_down()
        assert await bed.reads(0.02, quiet=False) == 0.02
        assert bed.wake_ups.asleep == set()


async def test_other_relays_heartbeats_wake_nobody() -> None:
    bed = Bed()
    async with bed.listening():
        await bed.lie_down()
        bed.wake_ups.notify(str(UUID(int=2)))
        assert await bed.reads() == SLEEP
        assert bed.facts.count("woken") == 0


async def test_it_does_not_sleep_before_it_has_heard_itself() -> None:
    """As behind a transaction pooler, where LISTEN succeeds and nothing ever arrives."""
    bed = Bed()
    bed.wake_ups.echoes = False
    async with bed.listening():
        assert [await bed.reads() for _ in range(5)] == [0.0, ONE_MORE_LOOK_SECONDS, 0.0, 1.0, 1.0]


async def test_a_missing_echo_is_told_once_and_another_connection_is_tried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waking, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr(waking, "ECHO_SECONDS", 0.02)
    monkeypatch.setattr(waking._RETRIES.__class__, "delay", lambda *_: 0.01)
    bed = Bed()
    bed.wake_ups.echoes = False
    async with bed.listening():
        for _ in range(3):
            before = bed.wake_ups.listeners
            await bed.reads()
            await eventually(lambda before=before: bed.wake_ups.listeners > before)  # type: ignore[misc]
            await bed.reads()
    told = [r for r in caplog.records if r.msg == "wake-ups unavailable, reading by the clock"]
    assert len(told) == 1
    assert "direct_url" in told[0].__dict__["error"]


async def test_a_lost_connection_ends_the_sleep_and_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waking._RETRIES.__class__, "delay", lambda *_: 0.01)
    bed = Bed()
    async with bed.listening():
        await bed.lie_down()
        bed.wake_ups.notify("lost")
        await eventually(lambda: bed.wake_ups.listeners == 2)
        assert bed.read_at_once >= 2
        assert ("listen",) in [told[1] for told in bed.facts.told]


@pytest.mark.parametrize("trouble", ["fails", "hangs"])
async def test_trouble_with_the_sleepers_costs_one_second_and_then_nothing_for_a_while(
    trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "ANSWER_SECONDS", 0.05)
    bed = Bed()
    async with bed.listening():
        setattr(bed.wake_ups, trouble, True)
        assert await bed.reads(0.5) == 0.5
        setattr(bed.wake_ups, trouble, False)
        assert await bed.reads(0.5) == 0.5
        assert bed.wake_ups.asleep == set()
        assert bed.facts.count("database_failed") == 1
        bed.now += RESTING_SECONDS
        # Whether it was known as asleep it cannot know: first it is known as awake.
        assert await bed.reads(0.5) == 0.5
        bed.now += AWAKE_SECONDS
        await bed.lie_down()


async def test_at_the_end_it_is_known_as_awake() -> None:
    bed = Bed()
    async with bed.listening():
        await bed.lie_down()
        await bed.waking.get_up()
        assert bed.wake_ups.asleep == set()
        assert await bed.reads() == 1.0
