"""Publishing inside Django's transactions: atomic blocks, their savepoints, their rollbacks."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from outboxd import NewJob, PublishRefused, enqueue, publish, publish_many
from tests.adapters.bringers import use_django
from tests.producer_scene import an_event, payloads, rows


class Odd(Exception):
    pass


@pytest.fixture(autouse=True)
def _django(database: str) -> Iterator[None]:
    use_django(database)
    rows(database, "CREATE TABLE orders (id text, status text)")
    rows(database, "INSERT INTO orders VALUES ('o-1', 'new')")
    yield
    connections.close_all()


def pay() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE orders SET status = 'paid'")


def statuses(dsn: str) -> list[str]:
    return [status for (status,) in rows(dsn, "SELECT status FROM orders")]


def test_an_atomic_block_holds_the_event(database: str) -> None:
    with transaction.atomic():
        pay()
        publish(connection, an_event(1), ordered=True)
        enqueue(connection, NewJob("mail.send", 2))
        assert payloads(database) == []

    assert (statuses(database), payloads(database)) == (["paid"], [1, 2])


def test_the_connection_may_be_taken_by_its_alias(database: str) -> None:
    with transaction.atomic(using="default"):
        publish_many(connections["default"], [an_event(1), an_event(2)])

    assert payloads(database) == [1, 2]


def test_an_exception_publishes_nothing(database: str) -> None:
    with suppress(Odd), transaction.atomic():
        pay()
        publish(connection, an_event(1))
        raise Odd

    assert (statuses(database), payloads(database)) == (["new"], [])


def test_a_rollback_that_is_only_marked_publishes_nothing(database: str) -> None:
    with transaction.atomic():
        publish(connection, an_event(1))
        transaction.set_rollback(True)

    assert payloads(database) == []


def test_an_inner_block_is_a_savepoint_that_takes_its_events_with_it(database: str) -> None:
    with transaction.atomic():
        publish(connection, an_event("before"))
        with suppress(Odd), transaction.atomic():
            pay()
            publish(connection, an_event("within"))
            raise Odd
        with transaction.atomic():
            publish(connection, an_event("after"))

    assert (statuses(database), payloads(database)) == (["new"], ["before", "after"])


def test_a_savepoint_by_hand_does_so_too(database: str) -> None:
    with transaction.atomic():
        savepoint = transaction.savepoint()
        publish(connection, an_event("within"))
        transaction.savepoint_rollback(savepoint)
        publish(connection, an_event("after"))

    assert payloads(database) == ["after"]


def test_outside_of_an_atomic_block_it_is_refused(database: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: publish(connection, an_event(1)),
        lambda: enqueue(connection, NewJob("mail.send", 1)),
        lambda: publish_many(connection, [an_event(1)]),
    ]
    for call in calls:
        with pytest.raises(PublishRefused, match=r"Django: `transaction\.atomic\(\)`"):
            call()

    assert payloads(database) == []


def test_autocommit_switched_off_counts_as_a_transaction(database: str) -> None:
    transaction.set_autocommit(False)
    publish(connection, an_event("lost"))
    transaction.rollback()
    publish(connection, an_event("kept"))
    transaction.commit()
    transaction.set_autocommit(True)

    assert payloads(database) == ["kept"]


def test_hooks_of_the_commit_run_after_it(database: str) -> None:
    seen: list[list[int]] = []
    with transaction.atomic():
        transaction.on_commit(lambda: seen.append(payloads(database)))
        publish(connection, an_event(1))

    assert seen == [[1]]


def test_a_refused_event_leaves_the_block_usable(database: str) -> None:
    with transaction.atomic():
        with pytest.raises(PublishRefused):
            publish(connection, an_event(float("nan")))
        publish(connection, an_event(1))

    assert payloads(database) == [1]


async def test_an_asynchronous_view_publishes_in_its_synchronous_part(database: str) -> None:
    """Django has no asynchronous transactions; its documentation says to do it like this."""

    @sync_to_async
    def checkout() -> None:
        with transaction.atomic():
            pay()
            publish(connection, an_event(1))
        connections.close_all()

    await checkout()

    assert (statuses(database), payloads(database)) == (["paid"], [1])


def test_djangos_own_log_of_queries_is_left_out(database: str) -> None:
    """Said in docs/producing.md: assertNumQueries does not count what is published."""
    with CaptureQueriesContext(connection) as queries, transaction.atomic():
        publish(connection, an_event(1))

    assert not any("outbox_events" in query["sql"] for query in queries.captured_queries)
    assert payloads(database) == [1]
