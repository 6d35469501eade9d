"""Writers that do not take turns by themselves: ordered=True makes them."""

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from outboxd import NewEvent, publish, publish_many
from tests.producer_scene import an_event, payloads, rows

WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"

Publish = Callable[..., None]


def one(connection: psycopg.Connection[Any], event: NewEvent, ordered: bool) -> None:
    publish(connection, event, ordered=ordered)


def of_many(connection: psycopg.Connection[Any], event: NewEvent, ordered: bool) -> None:
    other = an_event("other", aggregate_id="o-2")
    publish_many(connection, [other, event], ordered=ordered)


def by_sql(connection: psycopg.Connection[Any], event: NewEvent, ordered: bool) -> None:
    connection.execute(
        "SELECT outboxd.outbox_publish(%s, %s, %s, %s::text::jsonb, ordered => %s)",
        [event.type, event.aggregate_type, event.aggregate_id, str(event.payload), ordered],
    )


class Writer:
    """Publishes in a thread, since it may have to wait."""

    def __init__(self, dsn: str, publish: Publish, event: NewEvent, ordered: bool) -> None:
        self.connection = psycopg.connect(dsn)
        self.thread = threading.Thread(target=publish, args=(self.connection, event, ordered))

    def commit(self) -> None:
        self.thread.join(20)
        assert not self.thread.is_alive()
        self.connection.commit()
        self.connection.close()


def waits(dsn: str, writer: Writer) -> bool:
    """Once it has either got through or is seen to wait."""
    while writer.thread.is_alive():
        if rows(dsn, WAITING) == [(1,)]:
            return True
    return False


def until(fact: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not fact():
        assert time.monotonic() < end, "never became true"


@pytest.mark.parametrize("second", [one, of_many, by_sql])
@pytest.mark.parametrize("first", [one, of_many, by_sql])
def test_the_order_of_two_writers_of_one_aggregate_is_that_of_their_commits(
    database: str, first: Publish, second: Publish
) -> None:
    """Whichever interface each of them uses: all lock by the same key."""
    early = Writer(database, first, an_event(1), ordered=True)
    late = Writer(database, second, an_event(2), ordered=True)
    early.thread.start()
    early.thread.join(20)
    late.thread.start()

    assert waits(database, late)
    early.commit()
    late.commit()

    assert [payload for payload in payloads(database) if payload != "other"] == [1, 2]


def test_without_it_a_late_commit_comes_first(database: str) -> None:
    """What ordered=True is for: the relay may publish 2 before anybody can see 1."""
    early = Writer(database, one, an_event(1), ordered=False)
    late = Writer(database, one, an_event(2), ordered=False)
    for writer in (early, late):
        writer.thread.start()
        writer.thread.join(20)

    late.commit()
    seen = payloads(database)
    early.commit()

    assert seen == [2]
    assert payloads(database) == [1, 2]


def test_writers_of_other_aggregates_do_not_wait(database: str) -> None:
    early = Writer(database, one, an_event(1), ordered=True)
    late = Writer(database, one, an_event(2, aggregate_id="o-2"), ordered=True)
    early.thread.start()
    early.thread.join(20)
    late.thread.start()

    assert not waits(database, late)
    late.commit()
    early.commit()


def test_a_rollback_lets_the_next_writer_in(database: str) -> None:
    early = Writer(database, one, an_event(1), ordered=True)
    late = Writer(database, one, an_event(2), ordered=True)
    early.thread.start()
    early.thread.join(20)
    late.thread.start()

    assert waits(database, late)
    early.connection.rollback()
    early.connection.close()
    late.commit()

    assert payloads(database) == [2]


LOCKS = """
    SELECT pid, granted, (classid::bigint << 32) | objid::bigint
      FROM pg_locks
     WHERE locktype = 'advisory' AND objsubid = 1
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def by_key(dsn: str, aggregates: list[str]) -> list[tuple[str, int]]:
    """Aggregates with their keys, in the order of the keys."""
    keys = "SELECT id, hashtextextended('order' || chr(31) || id, 0) FROM unnest(%s::text[]) AS id"
    return sorted(rows(dsn, keys, aggregates), key=lambda pair: pair[1])


def waiting_for(dsn: str) -> dict[int, int]:
    """Sessions that wait for an advisory lock, and the key that each waits for."""
    return {pid: key for pid, granted, key in rows(dsn, LOCKS) if not granted}


@pytest.mark.parametrize("middle", range(1, 7))
def test_lists_in_opposite_orders_take_their_locks_in_one(database: str, middle: int) -> None:
    """A third session has a key in the middle. Both writers come as far as that, and neither has
    taken a key behind it, which is what a deadlock would need."""
    ordered = by_key(database, [f"o-{number}" for number in range(8)])
    aggregates = [aggregate for aggregate, _ in ordered]
    locked_key = ordered[middle][1]

    def publish_in(order: list[str]) -> Publish:
        def publish(connection: psycopg.Connection[Any], event: NewEvent, ordered: bool) -> None:
            events = [an_event(1, aggregate_id=aggregate) for aggregate in order]
            publish_many(connection, events, ordered=ordered)

        return publish

    writers = [
        Writer(database, publish_in(order), an_event(1), ordered=True)
        for order in (aggregates, aggregates[::-1])
    ]
    with psycopg.connect(database) as third:
        third.execute("SELECT pg_advisory_xact_lock(%s)", [locked_key])
        for writer in writers:
            writer.thread.start()
        until(lambda: len(waiting_for(database)) == 2)
        firsts = {key for _, granted, key in rows(database, LOCKS) if granted}
        waited_for = waiting_for(database)

    # One has all before the key in the middle, which it waits for; the other waits for the first.
    before = {key for _, key in ordered[:middle]}
    assert firsts == before | {locked_key}
    assert sorted(waited_for.values()) == sorted([ordered[0][1], locked_key])
    # Whoever has the first key goes through; the other one only after its commit.
    until(lambda: not all(writer.thread.is_alive() for writer in writers))
    for writer in sorted(writers, key=lambda writer: writer.thread.is_alive()):
        writer.commit()
    assert len(payloads(database)) == 16


@pytest.mark.parametrize("publish", [one, of_many, by_sql])
def test_many_writers_without_any_lock_of_their_own_stay_in_order(
    database: str, publish: Publish
) -> None:
    """Each counts its turn while it has the lock: turns and numbers have one order. A number that
    was drawn before the lock was there would be out of it."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE turns (turn serial, payload int)")

    def write(first: int) -> None:
        with psycopg.connect(database) as connection:
            for payload in range(first, first + 40):
                publish(connection, an_event(payload), ordered=True)
                connection.execute("INSERT INTO turns (payload) VALUES (%s)", [payload])
                connection.commit()

    threads = [threading.Thread(target=write, args=(first,)) for first in (0, 100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    turns = [payload for (payload,) in rows(database, "SELECT payload FROM turns ORDER BY turn")]
    assert len(turns) == 160
    assert [payload for payload in payloads(database) if payload != "other"] == turns
