"""What becomes of a payment: it pays its order once, or goes back, or needs a person."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import msgspec
import psycopg
import pytest

from handlers.decisions import AlreadyPaid, Bill, GiveBack, Mismatch, Pay, Payment, judge
from handlers.events import (
    GenerateInvoicePdf,
    NotificationRequested,
    PaymentRefundDue,
    ProcessPayment,
)
from handlers.orders import cancel_order, create_order
from handlers.payments import (
    mark_paid,
    process_payment,
)
from handlers.refunds import UnknownPayment
from outboxd import DeadLetter, Done, Event, Retry
from outboxd.testing import run
from tests.shop.customers import (
    COSTS,
    a_checkout,
    a_paid_order,
    a_reported_payment,
    a_success,
    an_event,
    number_of,
    payload_of,
    payloads_of,
    types_told,
    until_somebody_waits_for_a_lock,
)

ONE, OTHER = UUID(int=1), UUID(int=2)


def order_of(shop: psycopg.Connection, order_id: UUID) -> tuple[str, UUID | None]:
    """Its status, and the payment that paid it."""
    ((status, paid_by),) = shop.execute(
        "SELECT status, paid_by FROM shop.orders WHERE id = %s", (order_id,)
    ).fetchall()
    return status, paid_by


def refunded(shop: psycopg.Connection) -> list[UUID]:
    """The payments that are to be given back, as they were told of."""
    due = payloads_of(shop, "payment.refund_due", PaymentRefundDue)
    return [refund.payment_id for refund in due]


def effects(shop: psycopg.Connection) -> list[tuple[UUID, str]]:
    return shop.execute("SELECT event_id, handler FROM shop.effects ORDER BY seq").fetchall()


@pytest.mark.parametrize(
    ("bill", "verdict"),
    [
        (Bill("pending", COSTS, "SGD", None), Pay),
        (Bill("pending", COSTS + 1, "SGD", None), Mismatch),
        (Bill("pending", COSTS, "USD", None), Mismatch),
        (Bill("cancelled", COSTS, "SGD", None), GiveBack),
        (Bill("cancelled", COSTS + 1, "USD", None), GiveBack),
        (Bill("cancelled", COSTS, "SGD", OTHER), GiveBack),
        (Bill("cancelled", COSTS, "SGD", ONE), AlreadyPaid),
        (Bill("paid", COSTS, "SGD", ONE), AlreadyPaid),
        (Bill("paid", COSTS, "SGD", OTHER), GiveBack),
        (Bill("paid", COSTS, "SGD", None), Mismatch),
    ],
)
def test_what_a_payment_is_to_an_order(bill: Bill, verdict: type) -> None:
    assert type(judge(bill, Payment(ONE, COSTS, "SGD"))) is verdict


def test_a_payment_marks_its_order_as_paid(shop: psycopg.Connection) -> None:
    order_id, succeeded, _ = a_paid_order(shop)

    assert run(mark_paid, succeeded, tx=shop) == Done()

    assert order_of(shop, order_id) == ("paid", succeeded.payload.payment_id)
    assert shop.execute("SELECT paid_at FROM shop.orders").fetchall() == [
        (succeeded.payload.paid_at,)
    ]
    assert effects(shop) == [(succeeded.id, "payment.mark_paid")]
    assert number_of(shop, "refunds") == 0


def test_the_same_payment_pays_its_order_once(shop: psycopg.Connection) -> None:
    """As after the inbox has forgotten the event."""
    order_id, succeeded, _ = a_paid_order(shop)
    run(mark_paid, succeeded, tx=shop)

    assert run(mark_paid, succeeded, tx=shop) == Done()

    assert order_of(shop, order_id) == ("paid", succeeded.payload.payment_id)
    assert len(effects(shop)) == 1
    assert number_of(shop, "refunds") == 0


def test_a_cancelled_order_stays_cancelled_and_its_payment_goes_back(
    shop: psycopg.Connection,
) -> None:
    order_id, succeeded, _ = a_paid_order(shop)
    cancel_order(shop, order_id, "changed my mind")

    assert run(mark_paid, succeeded, tx=shop) == Done()
    assert run(mark_paid, succeeded, tx=shop) == Done()

    assert order_of(shop, order_id) == ("cancelled", None)
    assert payload_of(shop, "payment.refund_due", PaymentRefundDue) == PaymentRefundDue(
        order_id=order_id,
        payment_id=succeeded.payload.payment_id,
        amount=COSTS,
        reason="the order is cancelled",
    )
    assert shop.execute(
        "SELECT payment_id, order_id, amount_minor, currency, reason FROM shop.refunds"
    ).fetchall() == [
        (succeeded.payload.payment_id, order_id, COSTS, "SGD", "the order is cancelled")
    ]


def test_a_second_payment_goes_back_whatever_its_amount(shop: psycopg.Connection) -> None:
    order_id, first, _ = a_paid_order(shop)
    second, _ = a_reported_payment(shop, order_id, amount=COSTS - 100)
    run(mark_paid, first, tx=shop)

    assert run(mark_paid, second, tx=shop) == Done()

    assert order_of(shop, order_id) == ("paid", first.payload.payment_id)
    due = payload_of(shop, "payment.refund_due", PaymentRefundDue)
    assert (due.payment_id, due.amount) == (second.payload.payment_id, COSTS - 100)
    assert due.reason == "the order is paid by another payment"


def test_both_payments_of_an_order_that_is_cancelled_in_the_end_go_back(
    shop: psycopg.Connection,
) -> None:
    order_id, first, _ = a_paid_order(shop)
    run(mark_paid, first, tx=shop)
    second, _ = a_reported_payment(shop, order_id)
    cancel_order(shop, order_id, "out of stock")
    run(mark_paid, second, tx=shop)
    run(mark_paid, first, tx=shop)

    assert refunded(shop) == [first.payload.payment_id, second.payload.payment_id]


def test_a_payment_that_did_not_fit_goes_back_when_its_order_is_cancelled(
    shop: psycopg.Connection,
) -> None:
    order_id, succeeded, job = a_paid_order(shop, amount=COSTS - 1000)
    assert isinstance(run(mark_paid, succeeded, tx=shop), DeadLetter)

    cancel_order(shop, order_id, "gave up")

    due = payload_of(shop, "payment.refund_due", PaymentRefundDue)
    assert (due.payment_id, due.amount) == (succeeded.payload.payment_id, COSTS - 1000)
    # Redriven, both of its dead letters are done, and it goes back once.
    assert run(mark_paid, succeeded, tx=shop) == Done()
    assert run(process_payment, job, tx=shop) == Done()
    assert number_of(shop, "refunds") == types_told(shop).count("payment.refund_due") == 1


def test_a_payment_that_did_not_fit_goes_back_when_the_right_one_comes(
    shop: psycopg.Connection,
) -> None:
    order_id, short, job = a_paid_order(shop, amount=1000)
    assert isinstance(run(mark_paid, short, tx=shop), DeadLetter)
    right, _ = a_reported_payment(shop, order_id)

    assert run(mark_paid, right, tx=shop) == Done()

    assert order_of(shop, order_id) == ("paid", right.payload.payment_id)
    due = payload_of(shop, "payment.refund_due", PaymentRefundDue)
    assert (due.payment_id, due.amount) == (short.payload.payment_id, 1000)
    assert due.reason == "the order is paid by another payment"
    assert run(mark_paid, short, tx=shop) == Done()
    assert run(process_payment, job, tx=shop) == Done()
    assert refunded(shop) == [short.payload.payment_id]
    assert "generate_invoice_pdf" not in types_told(shop)


def test_an_order_that_is_paid_by_what_is_not_stored_cannot_be_cancelled(
    shop: psycopg.Connection,
) -> None:
    order_id = create_order(shop, a_checkout())
    shop.execute("UPDATE shop.orders SET status = 'paid', paid_at = now(), paid_by = %s", (ONE,))

    with pytest.raises(UnknownPayment, match=f"paid by {ONE}, which is not stored"):
        cancel_order(shop, order_id, "changed my mind")

    assert order_of(shop, order_id) == ("paid", ONE)
    assert types_told(shop) == ["order.created"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"amount": COSTS - 1}, "it costs 5350 SGD, and 5349 SGD was paid"),
        ({"amount": COSTS + 1}, "it costs 5350 SGD, and 5351 SGD was paid"),
        ({"currency": "IDR"}, "it costs 5350 SGD, and 5350 IDR was paid"),
    ],
)
def test_an_amount_that_does_not_fit_needs_a_person(
    shop: psycopg.Connection, changes: dict[str, object], reason: str
) -> None:
    order_id, succeeded, _ = a_paid_order(shop, **changes)

    outcome = run(mark_paid, succeeded, tx=shop)

    payment_id = succeeded.payload.payment_id
    assert outcome == DeadLetter(
        error=f"Reject: payment {payment_id} does not fit order {order_id}: {reason}"
    )
    assert order_of(shop, order_id) == ("pending", None)
    assert effects(shop) == []


def test_after_the_cause_is_fixed_a_rejected_payment_completes(shop: psycopg.Connection) -> None:
    order_id, succeeded, job = a_paid_order(shop, amount=COSTS + 100)
    assert isinstance(run(mark_paid, succeeded, tx=shop), DeadLetter)
    shop.execute("UPDATE shop.orders SET total_minor = %s", (COSTS + 100,))

    assert run(mark_paid, succeeded, tx=shop) == Done()
    assert run(process_payment, job, tx=shop) == Done()

    assert order_of(shop, order_id)[0] == "paid"


@pytest.mark.parametrize(("attempt", "expected"), [(1, Retry), (5, DeadLetter)])
def test_an_event_of_a_payment_that_is_not_stored_pays_nothing(
    shop: psycopg.Connection, attempt: int, expected: type
) -> None:
    order_id = create_order(shop, a_checkout())
    told = a_success(order_id)

    outcome = run(mark_paid, told, tx=shop, attempt=attempt)

    assert isinstance(outcome, Retry | DeadLetter)
    assert type(outcome) is expected
    assert f"order {order_id} has no payment {told.payload.payment_id}" in outcome.error
    assert order_of(shop, order_id) == ("pending", None)


def test_a_payment_of_another_order_pays_nothing(shop: psycopg.Connection) -> None:
    _, succeeded, _ = a_paid_order(shop)
    order_id = create_order(shop, a_checkout())
    other = an_event(msgspec.structs.replace(succeeded.payload, order_id=order_id))

    assert isinstance(run(mark_paid, other, tx=shop), Retry)

    assert order_of(shop, order_id) == ("pending", None)


def test_what_counts_is_the_payment_that_was_stored_and_not_what_an_event_says(
    shop: psycopg.Connection,
) -> None:
    order_id, succeeded, _ = a_paid_order(shop, amount=1)
    rich = an_event(msgspec.structs.replace(succeeded.payload, paid_amount=COSTS))

    outcome = run(mark_paid, rich, tx=shop)

    assert isinstance(outcome, DeadLetter)
    assert "it costs 5350 SGD, and 1 SGD was paid" in outcome.error
    assert order_of(shop, order_id) == ("pending", None)


@pytest.mark.parametrize(("attempt", "expected"), [(1, Retry), (5, DeadLetter)])
def test_a_payment_whose_order_is_not_there_yet_is_tried_again(
    shop: psycopg.Connection, attempt: int, expected: type
) -> None:
    assert type(run(mark_paid, a_success(uuid4()), tx=shop, attempt=attempt)) is expected


def test_a_payment_that_is_not_stored_yet_cannot_go_back_yet(shop: psycopg.Connection) -> None:
    order_id = create_order(shop, a_checkout())
    cancel_order(shop, order_id, "changed my mind")

    assert isinstance(run(mark_paid, a_success(order_id), tx=shop), Retry)

    assert types_told(shop) == ["order.created", "order.cancelled"]
    assert effects(shop) == []


def test_of_two_payments_that_arrive_together_one_pays_and_the_other_goes_back(
    shop: psycopg.Connection, shop_database: str
) -> None:
    order_id, first, _ = a_paid_order(shop)
    second, _ = a_reported_payment(shop, order_id)

    outcomes = together(shop_database, mark_paid, [first, second])

    assert outcomes == [Done(), Done()]
    assert order_of(shop, order_id)[0] == "paid"
    assert types_told(shop).count("payment.refund_due") == 1


def test_a_payment_waits_for_a_cancellation_that_is_under_way(
    shop: psycopg.Connection, shop_database: str
) -> None:
    order_id, succeeded, _ = a_paid_order(shop)

    with ThreadPoolExecutor(1) as thread:
        with shop.transaction():
            cancel_order(shop, order_id, "changed my mind")
            outcome = thread.submit(together, shop_database, mark_paid, [succeeded])
            until_somebody_waits_for_a_lock(shop_database)
        assert outcome.result() == [Done()]

    assert order_of(shop, order_id) == ("cancelled", None)
    assert types_told(shop)[-2:] == ["order.cancelled", "payment.refund_due"]


def test_a_paid_order_starts_what_follows(shop: psycopg.Connection) -> None:
    order_id, succeeded, job = a_paid_order(shop)
    run(mark_paid, succeeded, tx=shop)

    assert run(process_payment, job, tx=shop) == Done()

    assert types_told(shop)[-3:] == [
        "generate_invoice_pdf",
        "send_confirmation_email",
        "notification.requested",
    ]
    assert payload_of(shop, "generate_invoice_pdf", GenerateInvoicePdf).order_id == order_id
    ((customer_id,),) = shop.execute("SELECT customer_id FROM shop.orders").fetchall()
    assert payload_of(shop, "notification.requested", NotificationRequested) == (
        NotificationRequested(
            channel="whatsapp",
            template="payment_success",
            customer_id=customer_id,
            order_id=order_id,
        )
    )
    assert shop.execute("SELECT applied_at IS NOT NULL FROM shop.payments").fetchall() == [(True,)]
    assert effects(shop)[-1] == (job.id, "payment.process")


def test_a_payment_that_was_applied_before_starts_nothing(shop: psycopg.Connection) -> None:
    _, succeeded, job = a_paid_order(shop)
    run(mark_paid, succeeded, tx=shop)
    run(process_payment, job, tx=shop)
    told, done = types_told(shop), effects(shop)

    assert run(process_payment, job, tx=shop) == Done()

    assert types_told(shop) == told
    assert effects(shop) == done


def test_jobs_for_one_payment_that_run_together_start_it_once(
    shop: psycopg.Connection, shop_database: str
) -> None:
    _, succeeded, job = a_paid_order(shop)
    run(mark_paid, succeeded, tx=shop)
    copies = [an_event(job.payload) for _ in range(4)]

    assert together(shop_database, process_payment, copies) == [Done()] * 4

    assert types_told(shop).count("generate_invoice_pdf") == 1
    assert types_told(shop).count("notification.requested") == 1


def test_a_job_that_is_earlier_than_its_payment_waits_longer_each_time(
    shop: psycopg.Connection,
) -> None:
    job = an_event(ProcessPayment(event_id=uuid4()))

    delays = []
    for attempt in (1, 2, 3, 10, 2000):
        outcome = run(process_payment, job, tx=shop, attempt=attempt, max_attempts=5000)
        assert isinstance(outcome, Retry)
        delays.append(outcome.after_seconds)

    assert delays == [1, 2, 4, 300, 300]
    outcome = run(process_payment, job, tx=shop, attempt=5)
    assert isinstance(outcome, DeadLetter)
    assert f"there is no payment of event {job.payload.event_id}" in outcome.error


def test_a_job_that_is_earlier_than_mark_paid_waits(shop: psycopg.Connection) -> None:
    _, succeeded, job = a_paid_order(shop)

    assert isinstance(run(process_payment, job, tx=shop), Retry)
    assert "generate_invoice_pdf" not in types_told(shop)

    run(mark_paid, succeeded, tx=shop)
    assert run(process_payment, job, tx=shop) == Done()


def test_the_job_of_a_payment_that_does_not_fit_says_why_in_the_end(
    shop: psycopg.Connection,
) -> None:
    order_id, succeeded, job = a_paid_order(shop, amount=COSTS - 1)
    run(mark_paid, succeeded, tx=shop)

    outcome = run(process_payment, job, tx=shop, attempt=8, max_attempts=8)

    assert isinstance(outcome, DeadLetter)
    assert (
        f"order {order_id} is pending and not paid by payment {succeeded.payload.payment_id}: "
        "it costs 5350, and 5349 was paid"
    ) in outcome.error


def test_nothing_follows_from_a_payment_that_never_paid_its_order(
    shop: psycopg.Connection,
) -> None:
    order_id, succeeded, job = a_paid_order(shop)
    cancel_order(shop, order_id, "changed my mind")
    run(mark_paid, succeeded, tx=shop)

    assert run(process_payment, job, tx=shop) == Done()

    assert types_told(shop)[-1] == "payment.refund_due"
    assert number_of(shop, "refunds") == 1


@pytest.mark.parametrize("processed_first", [True, False])
def test_a_payment_that_was_taken_has_its_invoice_also_when_it_goes_back(
    shop: psycopg.Connection, processed_first: bool
) -> None:
    order_id, succeeded, job = a_paid_order(shop)
    run(mark_paid, succeeded, tx=shop)
    if processed_first:
        run(process_payment, job, tx=shop)
    cancel_order(shop, order_id, "changed my mind")

    for _ in range(2):
        assert run(process_payment, job, tx=shop) == Done()

    assert payload_of(shop, "generate_invoice_pdf", GenerateInvoicePdf).order_id == order_id
    thanked = types_told(shop).count("notification.requested")
    assert thanked == (1 if processed_first else 0)
    assert number_of(shop, "refunds") == 1


def test_a_second_payment_starts_nothing_of_its_own(shop: psycopg.Connection) -> None:
    order_id, first, job = a_paid_order(shop)
    second, other_job = a_reported_payment(shop, order_id)
    for payment in (first, second):
        run(mark_paid, payment, tx=shop)

    for each in (other_job, job):
        assert run(process_payment, each, tx=shop) == Done()

    assert types_told(shop).count("generate_invoice_pdf") == 1


def together(dsn: str, handler: Callable[..., None], events: Sequence[Event[Any]]) -> list[object]:
    """The outcomes of a handler that is called with all of these at once."""

    def handle(event: Event[Any]) -> object:
        with psycopg.connect(dsn, autocommit=True) as connection:
            return run(handler, event, tx=connection)

    with ThreadPoolExecutor(len(events)) as threads:
        return list(threads.map(handle, events))
