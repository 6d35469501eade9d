"""Stock: never more set aside or sold than there is, whatever comes in which order."""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from itertools import permutations
from typing import Any, assert_never
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.events import OrderCancelled, OrderCreated, StockRejected, StockReserved
from handlers.orders import Line, cancel_order, create_order
from handlers.prices import UnknownProduct
from handlers.stock import commit, reconsider, release, reserve, restock
from handlers.stock.standings import (
    REJECT,
    SET_ASIDE,
    Choose,
    Keep,
    Move,
    OnCancelled,
    OnCreated,
    OnPaid,
    PaidInVain,
    Standing,
    Wait,
    on_cancelled,
    on_created,
    on_paid,
    shortage,
)
from outboxd import DeadLetter, Done, Event, Retry
from outboxd.testing import run
from tests.shop.customers import (
    a_checkout,
    a_reported_payment,
    a_success,
    an_event,
    number_of,
    payload_of,
    payloads_of,
    types_told,
    until_somebody_waits_for_a_lock,
)

SERUM, BALM = "serum-30", "lip-balm"
LOCK_ARTICLE = "SELECT FROM shop.stock WHERE sku = %s FOR UPDATE NOWAIT"
PRICES = {SERUM: 2450, BALM: 450}


class Happened(Enum):
    CREATED = "created"
    CANCELLED = "cancelled"
    PAID = "paid"


HANDLERS: dict[Happened, Callable[..., None]] = {
    Happened.CREATED: reserve,
    Happened.CANCELLED: release,
    Happened.PAID: commit,
}


def an_order(shop: psycopg.Connection, *lines: tuple[str, int]) -> UUID:
    cart = tuple(Line(sku, quantity, PRICES[sku]) for sku, quantity in lines)
    return create_order(shop, a_checkout(f"key-{uuid4()}", cart))


def event_of(order_id: UUID, happened: Happened) -> Event[Any]:
    match happened:
        case Happened.CREATED:
            created = OrderCreated(order_id=order_id, customer_id=uuid4(), total=1, currency="SGD")
            return an_event(created)
        case Happened.CANCELLED:
            return an_event(OrderCancelled(order_id=order_id, reason="changed my mind"))
        case Happened.PAID:
            return a_success(order_id)
        case _:
            assert_never(happened)


def tell(shop: psycopg.Connection, order_id: UUID, *happened: Happened) -> list[object]:
    """The outcomes of the handlers that are told of it, one after the other."""
    return [run(HANDLERS[each], event_of(order_id, each), tx=shop) for each in happened]


def counters(shop: psycopg.Connection, sku: str) -> tuple[int, int]:
    """How many are on hand, and how many of them are reserved."""
    ((on_hand, reserved),) = shop.execute(
        "SELECT on_hand, reserved FROM shop.stock WHERE sku = %s", (sku,)
    ).fetchall()
    return on_hand, reserved


def states(shop: psycopg.Connection) -> list[str]:
    """The state of every reservation."""
    rows = shop.execute("SELECT state FROM shop.reservations ORDER BY order_id, sku").fetchall()
    return [state for (state,) in rows]


def effects(shop: psycopg.Connection) -> list[str]:
    rows = shop.execute("SELECT handler FROM shop.effects ORDER BY seq").fetchall()
    return [handler for (handler,) in rows]


def test_the_shop_opens_with_empty_shelves(shop: psycopg.Connection) -> None:
    assert number_of(shop, "stock") == number_of(shop, "products")
    assert shop.execute("SELECT DISTINCT on_hand, reserved FROM shop.stock").fetchall() == [(0, 0)]


def test_what_the_warehouse_brings_is_added(shop: psycopg.Connection) -> None:
    restock(shop, SERUM, 3)
    restock(shop, SERUM, 4)
    shop.execute("DELETE FROM shop.stock WHERE sku = %s", (BALM,))
    restock(shop, BALM, 5)

    assert (counters(shop, SERUM), counters(shop, BALM)) == ((7, 0), (5, 0))


def test_the_warehouse_brings_what_is_in_the_catalogue(shop: psycopg.Connection) -> None:
    with pytest.raises(UnknownProduct, match="not in the catalogue: soap"):
        restock(shop, "soap", 1)
    with pytest.raises(ValueError, match=r"-1 pieces of serum-30"):
        restock(shop, SERUM, -1)


def test_an_order_is_set_aside_and_told_of_article_by_article(shop: psycopg.Connection) -> None:
    restock(shop, SERUM, 10)
    restock(shop, BALM, 1)
    order_id = an_order(shop, (SERUM, 2), (BALM, 1), (SERUM, 3))
    created = event_of(order_id, Happened.CREATED)

    assert run(reserve, created, tx=shop) == Done()

    assert (counters(shop, SERUM), counters(shop, BALM)) == ((10, 5), (1, 1))
    told = payloads_of(shop, "stock.reserved", StockReserved)
    assert [(each.order_id, each.sku, each.quantity) for each in told] == [
        (order_id, BALM, 1),
        (order_id, SERUM, 5),
    ]
    stored = shop.execute("SELECT id, state FROM shop.reservations ORDER BY sku").fetchall()
    assert stored == [(each.reservation_id, "reserved") for each in told]
    ledger = shop.execute("SELECT event_id, handler FROM shop.effects").fetchall()
    assert ledger == [(created.id, "stock.reserve")]


@pytest.mark.parametrize("has_a_row", [True, False])
def test_too_little_of_one_article_sets_nothing_aside(
    shop: psycopg.Connection, has_a_row: bool
) -> None:
    restock(shop, SERUM, 10)
    if not has_a_row:
        shop.execute("DELETE FROM shop.stock WHERE sku = %s", (BALM,))
    order_id = an_order(shop, (SERUM, 2), (BALM, 1))

    assert tell(shop, order_id, Happened.CREATED) == [Done()]

    assert counters(shop, SERUM) == (10, 0)
    assert number_of(shop, "reservations") == 0
    assert types_told(shop) == ["order.created", "stock.rejected"]
    assert payload_of(shop, "stock.rejected", StockRejected) == StockRejected(
        order_id=order_id, sku=BALM, wanted=1, available=0
    )
    assert effects(shop) == ["stock.reserve"]


def test_a_rejected_order_stays_so_when_goods_arrive(shop: psycopg.Connection) -> None:
    order_id = an_order(shop, (BALM, 1))
    tell(shop, order_id, Happened.CREATED)
    restock(shop, BALM, 1)

    assert tell(shop, order_id, Happened.CREATED) == [Done()]

    assert counters(shop, BALM) == (1, 0)
    assert types_told(shop) == ["order.created", "stock.rejected"]


def test_a_rejected_order_gets_goods_that_somebody_brings_in_for_it(
    shop: psycopg.Connection,
) -> None:
    order_id = an_order(shop, (BALM, 2))
    tell(shop, order_id, Happened.CREATED)
    restock(shop, BALM, 1)
    assert not reconsider(shop, order_id)
    assert (counters(shop, BALM), states(shop)) == ((1, 0), [])
    restock(shop, BALM, 2)

    assert reconsider(shop, order_id)
    assert not reconsider(shop, order_id)

    assert (counters(shop, BALM), states(shop)) == ((3, 2), ["reserved"])
    assert types_told(shop) == ["order.created", "stock.rejected", "stock.reserved"]
    assert tell(shop, order_id, Happened.PAID) == [Done()]
    assert counters(shop, BALM) == (1, 0)


def test_a_rejected_order_that_is_paid_has_bought_what_is_brought_in_for_it(
    shop: psycopg.Connection,
) -> None:
    order_id = an_order(shop, (BALM, 2))
    succeeded, _ = a_reported_payment(shop, order_id, amount=900)
    tell(shop, order_id, Happened.CREATED)
    run(commit, succeeded, tx=shop)
    restock(shop, BALM, 3)

    assert reconsider(shop, order_id)

    assert (counters(shop, BALM), states(shop)) == ((1, 0), ["sold"])
    assert run(commit, succeeded, tx=shop) == Done()
    assert counters(shop, BALM) == (1, 0)


@pytest.mark.parametrize(
    "happened", [(), (Happened.CREATED,), (Happened.CREATED, Happened.CANCELLED)]
)
def test_an_order_that_is_not_rejected_is_not_reconsidered(
    shop: psycopg.Connection, happened: tuple[Happened, ...]
) -> None:
    restock(shop, BALM, 9)
    order_id = an_order(shop, (BALM, 2))
    tell(shop, order_id, *happened)
    before = (counters(shop, BALM), types_told(shop), number_of(shop, "order_stock"))

    assert not reconsider(shop, order_id)

    assert (counters(shop, BALM), types_told(shop), number_of(shop, "order_stock")) == before


def test_a_paid_order_leaves_the_shelf(shop: psycopg.Connection) -> None:
    restock(shop, SERUM, 10)
    order_id = an_order(shop, (SERUM, 4))

    assert tell(shop, order_id, Happened.CREATED, Happened.PAID) == [Done(), Done()]

    assert (counters(shop, SERUM), states(shop)) == ((6, 0), ["sold"])
    assert effects(shop) == ["stock.reserve", "stock.commit"]


def test_a_payment_waits_longer_each_time_for_the_reservation(shop: psycopg.Connection) -> None:
    restock(shop, SERUM, 10)
    order_id = an_order(shop, (SERUM, 4))
    paid = event_of(order_id, Happened.PAID)

    delays = []
    for attempt in (1, 2, 3, 10, 2000):
        outcome = run(commit, paid, tx=shop, attempt=attempt, max_attempts=5000)
        assert isinstance(outcome, Retry)
        delays.append(outcome.after_seconds)

    assert delays == [1, 2, 4, 300, 300]
    assert number_of(shop, "order_stock") == 0
    outcome = run(commit, paid, tx=shop, attempt=5)
    assert isinstance(outcome, DeadLetter)
    assert f"nothing is set aside for order {order_id} yet" in outcome.error


def test_a_payment_for_a_rejected_order_is_done_with_a_warning(
    shop: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    order_id = an_order(shop, (BALM, 1))
    tell(shop, order_id, Happened.CREATED)
    restock(shop, BALM, 1)

    with caplog.at_level(logging.WARNING):
        assert tell(shop, order_id, Happened.PAID) == [Done()]

    assert counters(shop, BALM) == (1, 0)
    assert effects(shop) == ["stock.reserve"]
    (record,) = caplog.records
    assert "whose stock was rejected" in record.getMessage()
    assert record.__dict__["order_id"] == str(order_id)


@pytest.mark.parametrize("handler", [reserve, release, commit])
def test_an_order_that_is_not_there_yet_is_tried_again(
    shop: psycopg.Connection, handler: Callable[..., None]
) -> None:
    (happened,) = (each for each, other in HANDLERS.items() if other is handler)

    (outcome,) = tell(shop, uuid4(), happened)

    assert isinstance(outcome, Retry)


def test_a_late_reservation_of_a_cancelled_order_is_not_made(shop: psycopg.Connection) -> None:
    restock(shop, SERUM, 10)
    order_id = an_order(shop, (SERUM, 4))
    cancel_order(shop, order_id, "changed my mind")

    tell(shop, order_id, Happened.CANCELLED, Happened.CREATED, Happened.PAID)

    assert (counters(shop, SERUM), states(shop)) == ((10, 0), [])
    assert "stock.reserved" not in types_told(shop)
    assert effects(shop) == ["stock.release"]


def arrangements(*happened: Happened) -> Iterator[tuple[Happened, ...]]:
    """Each of them twice, in every order in which they may arrive."""
    return iter(sorted(set(permutations(happened * 2)), key=str))


@pytest.mark.parametrize(
    ("happened", "left"),
    [
        ((Happened.CREATED,), (10, 7)),
        ((Happened.CREATED, Happened.PAID), (3, 0)),
        ((Happened.CREATED, Happened.CANCELLED), (10, 0)),
        ((Happened.CREATED, Happened.CANCELLED, Happened.PAID), (10, 0)),
    ],
)
def test_in_whatever_order_and_however_often_they_come_the_stock_is_the_same(
    shop: psycopg.Connection, happened: tuple[Happened, ...], left: tuple[int, int]
) -> None:
    for arrangement in arrangements(*happened):
        shop.execute("DELETE FROM shop.reservations")
        shop.execute("UPDATE shop.stock SET on_hand = 10, reserved = 0")
        order_id = an_order(shop, (SERUM, 7))
        early = [each for each in arrangement if isinstance(tell(shop, order_id, each)[0], Retry)]
        outcomes = tell(shop, order_id, *early)

        assert outcomes == [Done()] * len(early), arrangement
        assert counters(shop, SERUM) == left, arrangement


class Shelf:
    """The stock of one article and its orders, as the decisions alone would have it."""

    def __init__(self, on_hand: int, wanted: Sequence[int]) -> None:
        self.on_hand = on_hand
        self.reserved = 0
        self.wanted = wanted
        self.standings = [Standing.NEW] * len(wanted)

    def tell(self, order: int, happened: Happened) -> bool:
        """Whether it was of use by now."""
        standing = self.standings[order]
        decision: OnCreated | OnCancelled | OnPaid
        match happened:
            case Happened.CREATED:
                decision = on_created(standing)
            case Happened.CANCELLED:
                decision = on_cancelled(standing)
            case Happened.PAID:
                decision = on_paid(standing)
            case _:
                assert_never(happened)
        match decision:
            case Choose():
                wanted = {SERUM: self.wanted[order]}
                short = shortage(wanted, {SERUM: self.on_hand - self.reserved})
                self._move(order, SET_ASIDE if short is None else REJECT)
            case Move():
                self._move(order, decision)
            case Wait():
                return False
            case Keep() | PaidInVain():
                pass
            case _:
                assert_never(decision)
        return True

    def _move(self, order: int, move: Move) -> None:
        # What is rejected, or closed before it was set aside, has no pieces to move.
        self.standings[order] = move.to
        self.on_hand += move.on_hand * self.wanted[order]
        self.reserved += move.reserved * self.wanted[order]

    def pieces(self, standing: Standing) -> int:
        orders = zip(self.standings, self.wanted, strict=True)
        return sum(wanted for other, wanted in orders if other is standing)


@given(
    on_hand=st.integers(0, 12),
    wanted=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    data=st.data(),
)
def test_orders_that_compete_share_what_there_is_and_no_more(
    on_hand: int, wanted: list[int], data: st.DataObject
) -> None:
    orders = range(len(wanted))
    made = [(order, Happened.CREATED) for order in orders]
    later = data.draw(st.sets(st.tuples(st.sampled_from(orders), st.sampled_from(Happened))))
    repeated = data.draw(st.lists(st.sampled_from([*made, *sorted(later, key=str)])))
    arriving = data.draw(st.permutations([*made, *later, *repeated]))
    shelf = Shelf(on_hand, wanted)

    waiting = list(arriving)
    while waiting:
        order, happened = waiting.pop(0)
        if not shelf.tell(order, happened):
            waiting.append((order, happened))
        assert 0 <= shelf.reserved <= shelf.on_hand
        assert shelf.reserved == shelf.pieces(Standing.RESERVED)
        assert shelf.on_hand + shelf.pieces(Standing.SOLD) == on_hand

    for order, standing in enumerate(shelf.standings):
        if (order, Happened.CANCELLED) in later:
            assert standing is Standing.RELEASED
        elif (order, Happened.PAID) in later:
            assert standing in (Standing.SOLD, Standing.REJECTED)
        else:
            assert standing in (Standing.RESERVED, Standing.REJECTED)


def together(dsn: str, order_ids: Sequence[UUID], happened: Sequence[Happened]) -> list[object]:
    """The outcomes of these events of these orders, all at once."""

    def handle(order_id: UUID, each: Happened) -> list[object]:
        with psycopg.connect(dsn, autocommit=True) as connection:
            return tell(connection, order_id, each)

    with ThreadPoolExecutor(len(order_ids)) as threads:
        return [outcome for (outcome,) in threads.map(handle, order_ids, happened)]


def test_forty_orders_at_once_for_the_last_ten_pieces(
    shop: psycopg.Connection, shop_database: str
) -> None:
    """In opposite line orders, so that locks taken line by line would be a deadlock."""
    restock(shop, SERUM, 10)
    restock(shop, BALM, 10)
    lines = [(SERUM, 1), (BALM, 1)]
    order_ids = [an_order(shop, *lines[:: (-1) ** number]) for number in range(40)]

    assert together(shop_database, order_ids, [Happened.CREATED] * 40) == [Done()] * 40

    assert (counters(shop, SERUM), counters(shop, BALM)) == ((10, 10), (10, 10))
    told = types_told(shop)
    assert (told.count("stock.reserved"), told.count("stock.rejected")) == (20, 30)
    assert number_of(shop, "reservations") == 20
    orders_served = "SELECT count(*) FROM shop.order_stock WHERE state = 'reserved'"
    assert shop.execute(orders_served).fetchall() == [(10,)]


@pytest.mark.parametrize("happened", [Happened.CANCELLED, Happened.PAID])
def test_articles_are_locked_by_sku_wherever_their_reservations_lie(
    shop: psycopg.Connection, shop_database: str, happened: Happened
) -> None:
    restock(shop, SERUM, 10)
    restock(shop, BALM, 10)
    order_id = an_order(shop, (BALM, 1), (SERUM, 1))
    tell(shop, order_id, Happened.CREATED)
    # The first by sku is stored, and so found, as the last.
    shop.execute("UPDATE shop.reservations SET quantity = quantity WHERE sku = %s", (BALM,))

    with ThreadPoolExecutor(1) as thread:
        with shop.transaction():
            shop.execute(LOCK_ARTICLE, (BALM,))
            outcomes = thread.submit(together, shop_database, [order_id], [happened])
            until_somebody_waits_for_a_lock(shop_database)
            shop.execute(LOCK_ARTICLE, (SERUM,))
        assert outcomes.result() == [Done()]


def test_copies_of_everything_at_once_leave_the_stock_as_it_was(
    shop: psycopg.Connection, shop_database: str
) -> None:
    restock(shop, SERUM, 40)
    restock(shop, BALM, 40)
    lines = [(SERUM, 2), (BALM, 3)]
    order_ids = [an_order(shop, *lines[:: (-1) ** number]) for number in range(6)]
    happened = [each for each in Happened for _ in range(2)]
    arriving = [(order_id, each) for each in happened for order_id in order_ids]

    outcomes = together(shop_database, *zip(*arriving, strict=True))

    for order_id, each in arriving:  # what was too early comes again
        outcomes += tell(shop, order_id, each)
    assert all(outcome == Done() or "nothing is set aside" in str(outcome) for outcome in outcomes)
    assert (counters(shop, SERUM), counters(shop, BALM)) == ((40, 0), (40, 0))
