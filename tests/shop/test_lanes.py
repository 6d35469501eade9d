"""Lanes to the database: nobody waits for another lane, and nobody waits for ever."""

import threading
from collections.abc import Iterator
from typing import Any

import anyio
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg_pool import ConnectionPool

from handlers import lanes
from handlers.lanes import Crowded, Lane, Pool, shares
from handlers.orders import create_order
from tests.shop.customers import a_checkout, number_of


@pytest.fixture
def pool(shop_database: str) -> Iterator[Pool]:
    with ConnectionPool(
        shop_database,
        connection_class=psycopg.Connection[Any],
        kwargs={"autocommit": True},
        min_size=1,
        max_size=3,
        open=True,
    ) as pool:
        yield pool


def check_out(connection: psycopg.Connection) -> None:
    create_order(connection, a_checkout())


def setting(connection: psycopg.Connection, name: str) -> str:
    ((value,),) = connection.execute("SELECT current_setting(%s)", (name,)).fetchall()
    return str(value)


def limits(connection: psycopg.Connection) -> tuple[str, str]:
    return setting(connection, "lock_timeout"), setting(connection, "statement_timeout")


@given(connections=st.integers(3, 1000))
def test_the_lanes_share_all_of_a_pool_and_no_more(connections: int) -> None:
    assert sum(shares(connections)) == connections
    assert min(shares(connections)) >= 1


@pytest.mark.parametrize("connections", [1, 2])
def test_a_small_pool_has_something_for_everybody(connections: int) -> None:
    assert shares(connections) == (1, 1, 1)


def test_most_of_ten_connections_are_for_customers_and_payments() -> None:
    assert shares(10) == (5, 4, 1)


async def test_a_work_is_bounded_in_time_and_what_comes_after_it_is_not(pool: Pool) -> None:
    assert await Lane(pool, 1).run(limits) == ("2s", "5s")
    with pool.connection() as connection:
        assert limits(connection) == ("0", "0")


async def test_nothing_is_left_of_a_work_that_fails(pool: Pool, shop: psycopg.Connection) -> None:
    def fail(connection: psycopg.Connection) -> None:
        check_out(connection)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Lane(pool, 1).run(fail)

    assert number_of(shop, "orders") == 0


async def test_what_a_work_has_done_is_committed_when_it_is_told(
    pool: Pool, shop: psycopg.Connection
) -> None:
    await Lane(pool, 1).run(check_out)

    assert number_of(shop, "orders") == 1


async def test_a_lane_that_is_full_holds_up_no_other(pool: Pool) -> None:
    full, free = Lane(pool, 2), Lane(pool, 1)
    end = threading.Event()
    begun = threading.Barrier(3)

    def hold(_: psycopg.Connection) -> None:
        begun.wait(30)
        end.wait(30)

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(full.run, hold)
        await anyio.to_thread.run_sync(begun.wait, 30)
        tasks.start_soon(full.run, limits)
        assert await free.run(limits) == ("2s", "5s")
        end.set()


async def test_whoever_gets_no_turn_is_told_so_and_takes_nobody_elses(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Lane(pool, 1)
    begun, end = threading.Event(), threading.Event()

    def hold(_: psycopg.Connection) -> None:
        begun.set()
        end.wait(30)

    monkeypatch.setattr(lanes, "TURN_SECONDS", 0.05)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lane.run, hold)
        await anyio.to_thread.run_sync(begun.wait, 30)
        with pytest.raises(Crowded, match=r"no turn within 0\.05 s"):
            await lane.run(limits)
        end.set()

    monkeypatch.undo()
    assert await lane.run(limits) == ("2s", "5s")
