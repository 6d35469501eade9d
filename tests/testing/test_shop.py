"""The shop's own handlers, each tested in one line."""

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from handlers.payments import mark_paid
from outboxd import DeadLetter, Done, Retry
from outboxd.testing import run
from tests.shop.customers import COSTS, a_paid_order, a_success, number_of


@pytest.fixture
def shop(shop_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shop_database, autocommit=True) as connection:
        yield connection


def test_a_payment_is_applied(shop: psycopg.Connection) -> None:
    _, event, _ = a_paid_order(shop)

    assert run(mark_paid, event, tx=shop) == Done()

    assert shop.execute("SELECT status FROM shop.orders").fetchall() == [("paid",)]
    assert number_of(shop, "effects") == 1


def test_a_wrong_amount_needs_a_person(shop: psycopg.Connection) -> None:
    _, event, _ = a_paid_order(shop, amount=COSTS - 1)

    assert isinstance(run(mark_paid, event, tx=shop), DeadLetter)


@pytest.mark.parametrize(("attempt", "expected"), [(1, Retry), (5, DeadLetter)])
def test_a_payment_that_comes_before_its_order_waits_for_it(
    shop: psycopg.Connection, attempt: int, expected: type
) -> None:
    assert type(run(mark_paid, a_success(uuid4()), tx=shop, attempt=attempt)) is expected
