"""What one relay does for all: the janitor's rounds, and the gauges about the table."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from outboxd.actors.janitor import (
    RELAYS_SILENT_SECONDS,
    ROWS_PER_STEP,
    SECONDS_PER_DAY,
    Janitor,
)
from outboxd.adapters.metrics.relay import AGE_BOUNDS, RelayMetrics
from outboxd.adapters.metrics.snapshot import snapshot
from outboxd.adapters.postgres.sessions import Sessions
from outboxd.adapters.postgres.upkeep import PostgresUpkeep
from outboxd.core.errors import OutageKind
from outboxd.core.settings import DatabaseSettings
from outboxd.ports.outbox import Purged, Survey
from outboxd.ports.relay_observer import FailureKind, Stage
from tests.relay.scene import Facts, FakeDestination, Scene, eventually


class ScriptedUpkeep:
    """Answers purges from a list, and remembers what it was asked."""

    def __init__(self, steps: Sequence[Purged]) -> None:
        self.steps = list(steps)
        self.asked: list[tuple[object, ...]] = []

    async def survey(self) -> Survey:
        raise AssertionError("nobody asked for a survey")

    async def purge(self, older_than_seconds: float, after_seq: int, limit: int) -> Purged:
        self.asked.append((older_than_seconds, after_seq, limit))
        return self.steps.pop(0)

    async def forget_relays(self, silent_seconds: float) -> None:
        self.asked.append((silent_seconds,))


async def test_the_janitor_walks_until_rows_are_too_young() -> None:
    upkeep = ScriptedUpkeep([Purged(5000, 5000, finished=False), Purged(9000, 17, finished=True)])
    facts = Facts()

    await Janitor(upkeep, 7.0, lambda: True, facts, dice=lambda: 0.0).clean()

    assert upkeep.asked == [
        (RELAYS_SILENT_SECONDS,),
        (7 * SECONDS_PER_DAY, 0, ROWS_PER_STEP),
        (7 * SECONDS_PER_DAY, 5000, ROWS_PER_STEP),
    ]
    assert [told[1] for told in facts.told] == [(5000,), (17,)]


async def test_the_janitor_stops_when_another_relay_takes_over() -> None:
    upkeep = ScriptedUpkeep([])

    await Janitor(upkeep, 7.0, lambda: False, Facts(), dice=lambda: 0.0).clean()

    assert upkeep.asked == [(RELAYS_SILENT_SECONDS,)]


async def test_old_rows_go_and_the_table_is_surveyed_by_one_relay_only(database: str) -> None:
    scene = Scene(database)
    queue = FakeDestination()
    scene.insert(["order-1"] * 5)
    scene.run(
        "UPDATE outbox_events SET published_at = now() - interval '8 days',"
        " occurred_at = now() - interval '8 days'"
    )
    scene.run("UPDATE outbox_buckets SET owner = %s WHERE bucket <> 0", UUID(int=9))
    scene.run("UPDATE outbox_buckets SET lease_until = now() + interval '1 h' WHERE bucket <> 0")

    async with scene.relay(queue) as first, scene.relay(queue) as second:
        await eventually(lambda: scene.ask("SELECT count(*) FROM outbox_events") == [(0,)])
        holder, other = (first, second) if first.identity in scene.owned() else (second, first)
        await eventually(lambda: holder.facts.last("surveyed") == ((Survey(0, 0.0, 0),), {}))
        assert other.facts.last("surveyed") == ((None,), {})
        await eventually(lambda: holder.facts.last("measured")[1]["buckets"] == 1)


def lines(registry: CollectorRegistry) -> dict[str, float]:
    """Every sample of the default outbox by name and remaining labels."""
    found = {}
    for family in snapshot(registry):
        for sample in family.samples:
            labels = {k: v for k, v in sample.labels.items() if k != "outbox"}
            rest = ",".join(f"{k}={v}" for k, v in sorted(labels.items()))
            found[sample.name + (f"{{{rest}}}" if rest else "")] = sample.value
    return found


def test_every_series_exists_before_anything_happens() -> None:
    registry = CollectorRegistry()
    RelayMetrics(registry, ["sqs:orders"])

    samples = lines(registry)

    assert samples["outboxd_outbox_published_total{destination=sqs:orders}"] == 0
    assert samples["outboxd_outbox_destination_up{destination=sqs:orders}"] == 1
    for kind in FailureKind:
        name = f"outboxd_outbox_publish_failures_total{{destination=sqs:orders,error_type={kind}}}"
        assert samples[name] == 0
    for outage in OutageKind:
        name = f"outboxd_outbox_destination_outages_total{{destination=sqs:orders,kind={outage}}}"
        assert samples[name] == 0
    for stage in Stage:
        assert samples[f"outboxd_outbox_batch_duration_seconds_count{{stage={stage}}}"] == 0
    for gauge in ("pending_rows", "oldest_pending_age_seconds", "dead_rows", "blocked_keys"):
        assert samples[f"outboxd_outbox_{gauge}"] == 0
    assert all(name.startswith("outboxd_") for name in samples)


def test_a_pack_is_counted_with_the_age_of_each_event() -> None:
    registry = CollectorRegistry()
    metrics = RelayMetrics(registry, ["sqs:orders"], wall_clock=lambda: 1234.0)

    metrics.accepted("sqs:orders", [0.02, 0.02, 4.0, 1e9])

    samples = lines(registry)
    assert samples["outboxd_outbox_published_total{destination=sqs:orders}"] == 4
    assert samples["outboxd_outbox_publish_latency_seconds_bucket{le=0.01}"] == 0
    assert samples["outboxd_outbox_publish_latency_seconds_bucket{le=0.025}"] == 2
    assert samples["outboxd_outbox_publish_latency_seconds_bucket{le=5.0}"] == 3
    assert samples[f"outboxd_outbox_publish_latency_seconds_bucket{{le={AGE_BOUNDS[-1]}}}"] == 3
    assert samples["outboxd_outbox_publish_latency_seconds_bucket{le=+Inf}"] == 4
    assert samples["outboxd_outbox_publish_latency_seconds_count"] == 4
    assert samples["outboxd_outbox_publish_latency_seconds_sum"] == pytest.approx(1e9 + 4.04)
    assert samples["outboxd_outbox_batch_rows_sum"] == 4
    assert samples["outboxd_outbox_last_publish_timestamp_seconds"] == 1234.0


def test_outages_and_levels_are_told() -> None:
    registry = CollectorRegistry()
    metrics = RelayMetrics(registry, ["sqs:orders"], wall_clock=lambda: 1234.0)

    metrics.paused("sqs:orders", OutageKind.DENIED)
    metrics.failed("sqs:orders", FailureKind.REFUSED, 2)
    metrics.uncertain("sqs:orders", 3)
    metrics.database_failed("mark")
    metrics.measured(buckets=64, unsettled=5, blocked=6, unrouted=7)
    metrics.surveyed(Survey(10, 20.5, 3))

    samples = lines(registry)
    assert samples["outboxd_outbox_destination_up{destination=sqs:orders}"] == 0
    assert (
        samples["outboxd_outbox_destination_outages_total{destination=sqs:orders,kind=denied}"] == 1
    )
    assert samples["outboxd_outbox_ambiguous_total{destination=sqs:orders}"] == 3
    assert samples["outboxd_outbox_database_failures_total{doing=mark}"] == 1
    assert samples["outboxd_outbox_buckets_owned"] == 64
    assert samples["outboxd_outbox_unsettled_rows"] == 5
    assert samples["outboxd_outbox_blocked_keys"] == 6
    assert samples["outboxd_outbox_unrouted_keys"] == 7
    assert samples["outboxd_outbox_pending_rows"] == 10
    assert samples["outboxd_outbox_oldest_pending_age_seconds"] == 20.5
    assert samples["outboxd_outbox_stats_last_success_timestamp_seconds"] == 1234.0
    metrics.recovered("sqs:orders")
    metrics.surveyed(None)
    assert lines(registry)["outboxd_outbox_destination_up{destination=sqs:orders}"] == 1
    assert lines(registry)["outboxd_outbox_pending_rows"] == 0


async def test_discarded_events_are_purged_and_not_counted_and_dead_ones_stay(
    database: str,
) -> None:
    scene = Scene(database)
    dead, _, young = scene.insert(["order-1", "order-2", "order-3"])
    long_ago = "now() - interval '8 days'"
    scene.run(f"UPDATE outbox_events SET occurred_at = {long_ago}, dead_at = {long_ago}")
    scene.run("UPDATE outbox_events SET next_attempt_at = 'infinity' WHERE seq <> %s", dead)
    scene.run("UPDATE outbox_events SET dead_at = now() WHERE seq = %s", young)
    sessions = Sessions(DatabaseSettings(url=database), "test")
    upkeep = PostgresUpkeep(sessions, "outboxd")
    try:
        assert (await upkeep.survey()).dead == 1
        assert await upkeep.purge(0.0, 0, 100) == Purged(young, 1, finished=True)
    finally:
        await sessions.close()
    assert scene.ask("SELECT seq FROM outbox_events ORDER BY seq") == [(dead,), (young,)]
