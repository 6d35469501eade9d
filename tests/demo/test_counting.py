"""Everything that was counted, put together: what waits, what is left, what nobody asked for."""

from collections.abc import Iterator

import psycopg
import pytest

from outboxd.demo.counting import Count, QueueDepth, count, count_outbox
from outboxd.demo.flows import count_flows
from tests.demo.shop import buy, elsewhere, fill_shelves, work_off

EMPTY = {"jobs": QueueDepth()}


@pytest.fixture
def shop(shop_database: str) -> Iterator[psycopg.Connection]:
    """A purchase, with all that follows from it in the tables."""
    buy(shop_database, range(1, 2))
    with psycopg.connect(shop_database, autocommit=True) as connection:
        fill_shelves(connection)
        yield connection


def counted(
    shop: psycopg.Connection,
    queues: dict[str, QueueDepth] = EMPTY,
    dead_letters: dict[str, QueueDepth] = EMPTY,
) -> Count:
    return recounted(shop, work_off(shop), queues, dead_letters)


def recounted(
    shop: psycopg.Connection,
    told: frozenset[str] = frozenset(),
    queues: dict[str, QueueDepth] = EMPTY,
    dead_letters: dict[str, QueueDepth] = EMPTY,
) -> Count:
    return count(
        count_flows(shop, elsewhere(told=told)),
        outbox=count_outbox(shop, "outboxd"),
        queues=queues,
        dead_letters=dead_letters,
    )


def test_when_all_is_done_nothing_is_left(shop: psycopg.Connection) -> None:
    result = counted(shop)

    assert result.complete
    assert result.quiet
    assert result.events_published == result.events_committed == 3


def test_what_waits_is_worked_on_or_hidden_is_left(shop: psycopg.Connection) -> None:
    queues = {"a": QueueDepth(1, 2, 4), "b": QueueDepth(8)}

    result = counted(shop, queues, {"a": QueueDepth(3)})

    assert result.messages_left == 15
    assert result.dead_letters == 3
    assert not result.quiet


def test_events_are_held_against_those_that_the_orders_must_have_caused_by_type(
    shop: psycopg.Connection,
) -> None:
    """One too many of one type does not make up for one too few of another."""
    ((lines,),) = shop.execute("SELECT count(*) FROM shop.order_items").fetchall()
    before = counted(shop)
    shop.execute(
        "UPDATE outboxd.outbox_events SET event_type = 'order.made'"
        " WHERE event_type = 'order.created'"
    )

    result = recounted(shop)

    # Nobody has published yet what would follow from the payment.
    assert (before.events_missing, before.events_unexpected) == (5 + lines, 0)
    assert (result.events_missing, result.events_unexpected) == (6 + lines, 1)


def test_sales_that_are_short_of_money_are_not_complete(shop: psycopg.Connection) -> None:
    told = work_off(shop)
    shop.execute("UPDATE shop.daily_sales SET total_minor = total_minor - 1")

    result = recounted(shop, told)

    assert result.effects_missing == 0
    assert not result.complete


def test_a_dead_event_is_backlog(shop: psycopg.Connection) -> None:
    work_off(shop)
    shop.execute(
        "UPDATE outboxd.outbox_events SET published_at = NULL, dead_at = now() WHERE seq = 1"
    )

    assert count_outbox(shop, "outboxd").backlog == 1


def test_the_outbox_is_as_old_as_what_has_waited_longest(shop: psycopg.Connection) -> None:
    shop.execute(
        "UPDATE outboxd.outbox_events SET occurred_at = occurred_at - interval '2 seconds'"
    )

    seen = count_outbox(shop, "outboxd")

    assert (seen.committed, seen.published, seen.backlog) == (3, 0, 3)
    assert 2.0 <= seen.oldest_seconds < 60.0
