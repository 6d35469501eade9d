"""What the outbox is asked every ten seconds stays cheap on a table of millions: which index the
statements use, and how many rows they look at, on a table of some ten thousand."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, LiteralString

import psycopg
import pytest

from outboxd.adapters.postgres import row_counts
from outboxd.adapters.postgres.row_counts import DEAD, PENDING, DeadCount, PendingCount
from outboxd.adapters.postgres.sessions import statement
from outboxd.adapters.postgres.upkeep import OLDEST, PURGE
from tests.relay.scene import Scene

ROWS = 40_000

FILL = """
    INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload, published_at)
    SELECT 'order.placed', 'order', (n * 7919 %% %s)::text, '{}', CASE WHEN n <= %s THEN now() END
      FROM generate_series(1, %s) n
"""


class Plan:
    """What one statement did."""

    def __init__(self, dsn: str, query: LiteralString, parameters: Mapping[str, Any]) -> None:
        with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
            explain = b"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "
            row = connection.execute(explain + statement(query, "outboxd"), parameters).fetchone()
        assert row is not None
        self._root = row[0][0]["Plan"]

    @property
    def indexes(self) -> set[str]:
        """The indexes that are used; a walk over a whole table is named as such."""
        return {
            node.get("Index Name", node["Node Type"])
            for node in _nodes(self._root)
            if "Index Name" in node or node["Node Type"] == "Seq Scan"
        }

    @property
    def rows(self) -> int:
        """How many rows of the table were fetched."""
        return sum(
            round(node["Actual Rows"] * node["Actual Loops"])
            + node.get("Rows Removed by Filter", 0) * node["Actual Loops"]
            for node in _nodes(self._root)
            if node["Node Type"] in ("Index Scan", "Bitmap Heap Scan", "Seq Scan")
            and node.get("Relation Name") == "outbox_events"
        )


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def filled(database: str, *, aggregates: int, published: int = 0) -> Scene:
    scene = Scene(database)
    scene.run(FILL, aggregates, published, ROWS)
    scene.run("ANALYZE outbox_events")
    return scene


@pytest.mark.parametrize(
    ("aggregates", "published"),
    [(5_000, 0), (1, 0), (5_000, 38_000)],
    ids=["a backlog", "a backlog of one aggregate", "little among much that is published"],
)
async def test_no_statement_of_the_count_looks_at_more_than_a_page_of_index_entries(
    database: str, monkeypatch: pytest.MonkeyPatch, aggregates: int, published: int
) -> None:
    """In proportion to so small a table; of a bucket with a few rows all may be collected."""
    monkeypatch.setattr(row_counts, "PER_STATEMENT", 64 * 10)
    scene = filled(database, aggregates=aggregates, published=published)
    count = PendingCount()

    while (parameters := count.question()) is not None:
        plan = Plan(database, PENDING, parameters)
        assert plan.indexes == {"outbox_events_pending"}
        assert plan.rows <= max(row_counts.PER_STATEMENT, published and ROWS - published)
        count.answered(_asked(scene, PENDING, parameters))

    assert count.total == ROWS - published


async def test_the_count_ends_at_its_cap(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_counts, "COUNT_CAP", 101)
    monkeypatch.setattr(row_counts, "PER_STATEMENT", 64)
    scene = filled(database, aggregates=5_000)
    count = PendingCount()
    asked = 0

    while (parameters := count.question()) is not None:
        asked += 1
        count.answered(_asked(scene, PENDING, parameters))

    assert (count.total, asked) == (101, 2)


async def test_discarded_events_are_passed_over_in_pages(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are dead as well, and there may be a million of them before one that counts."""
    monkeypatch.setattr(row_counts, "PER_STATEMENT", 1_000)
    scene = filled(database, aggregates=5_000)
    scene.run("UPDATE outbox_events SET dead_at = now(), next_attempt_at = 'infinity'")
    scene.run("UPDATE outbox_events SET next_attempt_at = NULL WHERE seq > %s", ROWS - 5)
    scene.run("UPDATE outbox_events SET published_at = now() WHERE seq = %s", ROWS)
    scene.run("ANALYZE outbox_events")
    count = DeadCount()

    while (parameters := count.question()) is not None:
        plan = Plan(database, DEAD, parameters)
        assert plan.indexes == {"outbox_events_dead"}
        assert plan.rows <= row_counts.PER_STATEMENT
        count.answered(_asked(scene, DEAD, parameters))

    assert count.total == 4


async def test_the_oldest_event_is_one_probe_for_each_bucket(database: str) -> None:
    filled(database, aggregates=5_000, published=10_000)

    plan = Plan(database, OLDEST, {})

    assert plan.indexes == {"outbox_events_pending"}
    assert plan.rows <= 64


async def test_a_step_of_the_purge_reads_its_page_and_no_more(database: str) -> None:
    filled(database, aggregates=5_000, published=38_000)

    step = {"age": 3_600.0, "discarded_age": 604_800.0, "after": 20_000, "limit": 50}
    plan = Plan(database, PURGE, step)

    assert plan.indexes == {"outbox_events_pkey"}
    assert plan.rows <= 2 * 50


def _asked(scene: Scene, query: str, parameters: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
    with psycopg.connect(scene.dsn, autocommit=True) as connection:
        return connection.execute(statement(query, "outboxd"), parameters).fetchall()
