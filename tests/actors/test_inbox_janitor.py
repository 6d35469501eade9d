"""The inbox's janitor: what counts as polled, what is purged, and what keeps it from purging."""

from collections.abc import Sequence

import anyio
import pytest
from prometheus_client import CollectorRegistry

from outboxd.actors.accompanied import Accompanied
from outboxd.actors.inbox_janitor import (
    ASK_AGAIN_SECONDS,
    POLLED_WITHIN_SECONDS,
    ROWS_PER_STEP,
    SECONDS_PER_DAY,
    SUSPECTS_KEPT_SECONDS,
    InboxJanitor,
)
from outboxd.adapters.metrics.inbox import InboxMetrics
from outboxd.core.errors import HandlerOverran, OutageKind, Unavailable
from outboxd.core.inbox_retention import Polled
from outboxd.core.settings import InboxSettings
from outboxd.ports.inbox_upkeep import Kept, Polls

NOW = 100 * SECONDS_PER_DAY


class FakeUpkeep:
    """Rows by their age in days; remembers what it was told."""

    def __init__(self, marks: Sequence[float] = ()) -> None:
        self.marks = [NOW - age * SECONDS_PER_DAY for age in marks]
        self.failures = [ROWS_PER_STEP, 3, 0]
        self.suspects = [0]
        self.suspects_asked: list[tuple[float, int]] = []
        self.known = [Polled("orders", NOW, 18 * SECONDS_PER_DAY)]
        self.told: list[tuple[str, float | None]] = []
        self.forgotten: list[float] = []
        self.busy = False

    async def polled(self, queue: str, lasting_seconds: float | None) -> None:
        self.told.append((queue, lasting_seconds))

    async def polls(self) -> Polls:
        return Polls(NOW, self.known)

    async def purge_marks(self, since: float, before: float, limit: int) -> int | None:
        if self.busy:
            return None
        doomed = [at for at in self.marks if since <= at < before][:limit]
        self.marks = [at for at in self.marks if at not in doomed]
        return len(doomed)

    async def purge_failures(self, before: float, limit: int) -> int | None:
        return None if self.busy else self.failures.pop(0)

    async def purge_suspects(self, older_than_seconds: float, limit: int) -> int:
        self.suspects_asked.append((older_than_seconds, limit))
        return self.suspects.pop(0)

    async def forget_gaps(self, before: float) -> None:
        self.forgotten.append(before)

    @property
    def ages(self) -> list[float]:
        return [(NOW - at) / SECONDS_PER_DAY for at in self.marks]


class FakeLife:
    def __init__(self, seconds: float | None = 18 * SECONDS_PER_DAY) -> None:
        self.seconds = seconds
        self.kind = OutageKind.DENIED
        self.asked = 0

    async def lasting_seconds(self) -> float:
        self.asked += 1
        if self.seconds is None:
            raise Unavailable("no answer", self.kind)
        return self.seconds


class Scene:
    """A janitor at a time of its own."""

    def __init__(
        self,
        upkeep: FakeUpkeep,
        life: FakeLife | None = None,
        settings: InboxSettings | None = None,
    ) -> None:
        self.now = 1000.0
        self.received: float | None = 990.0
        self.registry = CollectorRegistry()
        self.life = life or FakeLife()
        self.janitor = InboxJanitor(
            "orders",
            settings or InboxSettings(),
            upkeep=upkeep,
            life=self.life,
            last_receive_at=lambda: self.received,
            observer=InboxMetrics(self.registry, "orders"),
            dice=lambda: 0.0,
            clock=lambda: self.now,
        )

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {"queue": "orders", **labels})


async def test_a_poll_is_written_down_only_if_there_was_one() -> None:
    upkeep = FakeUpkeep()
    scene = Scene(upkeep)
    for received in (None, scene.now - POLLED_WITHIN_SECONDS - 1):
        scene.received = received
        await scene.janitor.beat()
    assert upkeep.told == []

    scene.received = scene.now
    await scene.janitor.beat()
    assert upkeep.told == [("orders", 18 * SECONDS_PER_DAY)]


async def test_sqs_is_asked_now_and_then() -> None:
    scene = Scene(FakeUpkeep())
    for now in (1000.0, 1010.0, 1000.0 + ASK_AGAIN_SECONDS):
        scene.now = scene.received = now
        await scene.janitor.beat()

    assert scene.life.asked == 2


async def test_a_round_deletes_what_is_old_enough_and_counts_it() -> None:
    upkeep = FakeUpkeep(marks=[90, 60, 29, 27, 1])
    scene = Scene(upkeep)
    await scene.janitor.beat()

    await scene.janitor.clean()

    assert upkeep.ages == [27, 1]
    assert scene.metric("outboxd_inbox_purged_total", table="processed_events") == 3
    assert scene.metric("outboxd_inbox_purged_total", table="handler_failures") == 5003
    assert scene.metric("outboxd_inbox_purged_total", table="suspects") == 0
    assert scene.metric("outboxd_inbox_kept_seconds") == 28 * SECONDS_PER_DAY
    assert upkeep.forgotten == [NOW - 28 * SECONDS_PER_DAY]


@pytest.mark.parametrize("polled", [True, False])
async def test_a_round_takes_as_many_steps_as_there_are_old_suspects(polled: bool) -> None:
    """Whether this queue is polled or not: what SQS has deleted cannot come back."""
    upkeep = FakeUpkeep()
    upkeep.suspects = [ROWS_PER_STEP, 3, 0]
    scene = Scene(upkeep)
    scene.received = scene.now if polled else None
    await scene.janitor.beat()

    await scene.janitor.clean()

    assert upkeep.suspects_asked == [(SUSPECTS_KEPT_SECONDS, ROWS_PER_STEP)] * 3
    assert scene.metric("outboxd_inbox_purged_total", table="suspects") == ROWS_PER_STEP + 3


async def test_the_next_round_goes_on_where_the_last_one_ended() -> None:
    upkeep = FakeUpkeep(marks=[29])
    upkeep.failures = upkeep.suspects = [0] * 4
    scene = Scene(upkeep)
    await scene.janitor.beat()
    await scene.janitor.clean()
    upkeep.marks = [NOW - 90 * SECONDS_PER_DAY]

    await scene.janitor.clean()

    assert upkeep.ages == [90]


async def test_after_an_outage_marks_are_kept_for_longer() -> None:
    upkeep = FakeUpkeep(marks=[60, 40, 29])
    upkeep.known = [Polled("orders", NOW - 20 * SECONDS_PER_DAY, None)]
    scene = Scene(upkeep)
    await scene.janitor.beat()

    await scene.janitor.clean()

    assert upkeep.ages == [40, 29]
    assert scene.metric("outboxd_inbox_kept_seconds") == 48 * SECONDS_PER_DAY


@pytest.mark.parametrize(("allowed", "left"), [(False, [17.0, 8.0]), (True, [])])
async def test_queues_that_keep_messages_for_longer_have_the_marks_kept_as_long(
    allowed: bool, left: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    upkeep = FakeUpkeep(marks=[19, 17, 8])
    settings = InboxSettings(retention_days=7, allow_shorter_retention=allowed)
    scene = Scene(upkeep, settings=settings)
    await scene.janitor.beat()

    await scene.janitor.clean()

    assert upkeep.ages == left
    assert ("marks are kept as long" in caplog.text) is not allowed


@pytest.mark.parametrize("allowed", [False, True])
async def test_a_pool_that_has_not_polled_yet_purges_nothing(allowed: bool) -> None:
    upkeep = FakeUpkeep(marks=[90])
    scene = Scene(upkeep, settings=InboxSettings(allow_shorter_retention=allowed))
    scene.received = None
    await scene.janitor.beat()

    await scene.janitor.clean()

    assert upkeep.ages == [90]


async def test_nothing_is_purged_before_sqs_has_said_how_long_messages_last() -> None:
    upkeep = FakeUpkeep(marks=[90])
    scene = Scene(upkeep, FakeLife(None))
    await scene.janitor.beat()

    await scene.janitor.clean()

    assert upkeep.ages == [90]
    assert upkeep.told == [("orders", None)]
    assert scene.metric("outboxd_inbox_purge_failures_total") == 1


async def test_somebody_elses_purge_is_left_alone() -> None:
    upkeep = FakeUpkeep(marks=[90])
    upkeep.busy = True
    scene = Scene(upkeep)
    await scene.janitor.beat()

    await scene.janitor.clean()

    assert upkeep.ages == [90]


async def test_a_right_that_is_missing_is_told_once_and_an_outage_is_for_the_pool_to_tell(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene(FakeUpkeep(), life=FakeLife(None))
    told = "retention of the queue unknown"

    scene.life.kind = OutageKind.UNREACHABLE
    await scene.janitor.beat()
    assert [each.message for each in caplog.records if each.levelname == "WARNING"] == []

    scene.life.kind = OutageKind.DENIED
    for _ in range(3):
        await scene.janitor.beat()
    assert [each.message for each in caplog.records if each.levelname == "WARNING"] == [told]
    assert scene.metric("outboxd_inbox_purge_failures_total") == 4


class Worker:
    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.running = False

    async def run(self) -> None:
        if self._error is not None:
            raise self._error


class Loop:
    def __init__(self) -> None:
        self.ended = False

    async def run(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.ended = True


async def test_a_companion_ends_with_its_actor() -> None:
    loop = Loop()
    with anyio.fail_after(5):
        await Accompanied(Worker(), loop).run()


async def test_an_actors_error_is_not_wrapped() -> None:
    with pytest.raises(HandlerOverran, match="slow"):
        await Accompanied(Worker(HandlerOverran("slow")), Loop()).run()


def test_every_series_exists_from_the_start() -> None:
    registry = CollectorRegistry()
    InboxMetrics(registry, "orders")

    for kept in Kept:
        labels = {"queue": "orders", "table": kept.value}
        assert registry.get_sample_value("outboxd_inbox_purged_total", labels) == 0
