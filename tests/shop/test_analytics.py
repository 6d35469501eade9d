"""Daily sales."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta, timezone
from uuid import UUID

import anyio
import msgspec
import psycopg
import pytest
from anyio import to_thread

from handlers.analytics import count_sales
from handlers.events import PaymentSucceeded
from handlers.orders import create_order
from outboxd import Done, Event, Retry
from outboxd.adapters.handlers import Runner
from outboxd.adapters.postgres.consumer_database import consumer_database
from outboxd.core.settings import DatabaseSettings
from outboxd.ports.handling import BatchDone
from outboxd.testing import run_async
from tests.adapters.handling_scene import a_call, loaded
from tests.shop.customers import (
    a_checkout,
    a_reported_payment,
    a_success,
    until_somebody_waits_for_a_lock,
)

NEW_YEAR_IN_SINGAPORE = datetime(2026, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=8)))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

LOCK_DAYS = """
    SELECT FROM shop.daily_sales WHERE day BETWEEN %(first)s AND %(last)s FOR UPDATE NOWAIT
"""


@pytest.fixture
async def tx(shop_database: str) -> AsyncIterator[psycopg.AsyncConnection]:
    async with await psycopg.AsyncConnection.connect(shop_database, autocommit=True) as connection:
        yield connection


def a_sale(
    shop: psycopg.Connection,
    order_id: UUID,
    amount: int,
    paid_at: datetime = NOON,
    currency: str = "SGD",
) -> Event[PaymentSucceeded]:
    """As the gateway has reported it."""
    sale, _ = a_reported_payment(
        shop, order_id, amount=amount, currency=currency, paid_at=paid_at.isoformat()
    )
    return sale


@pytest.fixture
async def runner(shop_database: str) -> AsyncIterator[Runner]:
    """Calls the handler as the daemon does, with an inbox."""
    handler = loaded(count_sales, "analytics.count_sales", batch=100)
    settings = DatabaseSettings(url=shop_database)
    async with consumer_database(settings, "test", "analytics-events") as database:
        yield Runner([handler], concurrency=4, database=database)


async def deliver(runner: Runner, *batch: Event[PaymentSucceeded]) -> BatchDone:
    calls = [a_call(sale.id, msgspec.json.encode(sale.payload)) for sale in batch]
    ending = await runner.run_batch("analytics.count_sales", calls)
    assert isinstance(ending, BatchDone), ending
    return ending


async def sales(tx: psycopg.AsyncConnection) -> list[tuple[date, str, int, int]]:
    rows = await tx.execute(
        "SELECT day, currency, orders, total_minor FROM shop.daily_sales ORDER BY day, currency"
    )
    return await rows.fetchall()


async def counted(tx: psycopg.AsyncConnection) -> list[tuple[UUID, str]]:
    rows = await tx.execute("SELECT event_id, handler FROM shop.effects ORDER BY seq")
    return await rows.fetchall()


async def test_payments_are_counted_by_the_day_in_utc_and_by_currency(
    shop: psycopg.Connection, tx: psycopg.AsyncConnection
) -> None:
    """The payment's currency, also when it is not the order's: that is what the shop received."""
    order_id = create_order(shop, a_checkout())
    batch = [
        a_sale(shop, order_id, 1000, NEW_YEAR_IN_SINGAPORE),
        a_sale(shop, order_id, 500, datetime(2025, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
        a_sale(shop, order_id, 500, datetime(2026, 1, 1, tzinfo=UTC), "JPY"),
        a_sale(shop, order_id, 70, datetime(2026, 1, 1, tzinfo=UTC)),
    ]

    assert await run_async(count_sales, batch, tx=tx) == Done()

    assert await sales(tx) == [
        (date(2025, 12, 31), "SGD", 2, 1500),
        (date(2026, 1, 1), "JPY", 1, 500),
        (date(2026, 1, 1), "SGD", 1, 70),
    ]
    assert await counted(tx) == [(sale.id, "analytics.count_sales") for sale in batch]


async def test_batches_add_up(shop: psycopg.Connection, tx: psycopg.AsyncConnection) -> None:
    order_id = create_order(shop, a_checkout())

    for amounts in ([1, 2], [3], [4, 5, 6]):
        batch = [a_sale(shop, order_id, amount) for amount in amounts]
        assert await run_async(count_sales, batch, tx=tx) == Done()

    assert await sales(tx) == [(date(2026, 1, 1), "SGD", 6, 21)]


async def test_a_payment_that_is_not_stored_is_tried_again_and_its_neighbours_are_counted(
    shop: psycopg.Connection, tx: psycopg.AsyncConnection
) -> None:
    """As the daemon does it: the batch fails and leaves nothing, then each is called alone."""
    order_id = create_order(shop, a_checkout())
    known, unknown = a_sale(shop, order_id, 300), a_success(order_id)

    assert isinstance(await run_async(count_sales, [known, unknown], tx=tx), Retry)
    assert (await sales(tx), await counted(tx)) == ([], [])

    assert await run_async(count_sales, [known], tx=tx) == Done()
    outcome = await run_async(count_sales, [unknown], tx=tx)
    assert isinstance(outcome, Retry)
    assert f"there is no payment {unknown.payload.payment_id}" in outcome.error
    assert await sales(tx) == [(date(2026, 1, 1), "SGD", 1, 300)]
    assert await counted(tx) == [(known.id, "analytics.count_sales")]


async def test_payments_that_are_delivered_again_are_counted_once(
    shop: psycopg.Connection, tx: psycopg.AsyncConnection, runner: Runner
) -> None:
    order_id = create_order(shop, a_checkout())
    a, b, c, d = (a_sale(shop, order_id, amount) for amount in (1, 10, 100, 1000))

    assert await deliver(runner, a, b, c) == BatchDone()
    assert await deliver(runner, c, d, a, d) == BatchDone(duplicates=frozenset({0, 2, 3}))
    assert await deliver(runner, a, b, c, d) == BatchDone(duplicates=frozenset(range(4)))

    assert await sales(tx) == [(date(2026, 1, 1), "SGD", 4, 1111)]
    assert await counted(tx) == [(sale.id, "analytics.count_sales") for sale in (a, b, c, d)]


async def test_days_are_locked_in_order_so_that_batches_never_wait_in_a_circle(
    shop: psycopg.Connection, shop_database: str, tx: psycopg.AsyncConnection, runner: Runner
) -> None:
    order_id = create_order(shop, a_checkout())
    days = [NOON + timedelta(days=number) for number in range(10)]
    batch = [a_sale(shop, order_id, 1, day) for day in reversed(days)]
    await deliver(runner, *[a_sale(shop, order_id, 1, day) for day in days])

    async with anyio.create_task_group() as tasks:
        with shop.transaction():
            shop.execute(LOCK_DAYS, {"first": days[0].date(), "last": days[0].date()})
            tasks.start_soon(deliver, runner, *batch)
            await to_thread.run_sync(until_somebody_waits_for_a_lock, shop_database)
            shop.execute(LOCK_DAYS, {"first": days[1].date(), "last": days[-1].date()})

    assert [row[2:] for row in await sales(tx)] == [(2, 2)] * 10
