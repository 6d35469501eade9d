"""Invoices: one PDF for each order that was paid, the same however often it is written."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypdf import PdfReader

from handlers.events import GenerateInvoicePdf
from handlers.invoices import GenerateInvoice
from handlers.invoices.decisions import Never, NotYet, Order, Write, decide
from handlers.invoices.document import render
from handlers.invoices.fonts import printable
from handlers.invoices.generate import GENERATE
from handlers.invoices.invoice import Invoice, Item, Seller, seller_of
from handlers.invoices.parts import figure
from handlers.invoices.store import LONGEST_SECONDS, InvoiceStore, NotStored
from handlers.orders import Line, cancel_order, create_order
from handlers.payments import mark_paid
from outboxd import DeadLetter, Done, Event, Retry
from outboxd.core.outcomes import Outcome
from outboxd.testing import run
from tests.shop.customers import (
    CART,
    COSTS,
    a_checkout,
    a_paid_order,
    a_reported_payment,
    an_event,
    number_of,
)
from tests.shop.objects import REGION, Bucket, MoodyS3, a_bucket, moody_s3, s3
from tests.shop.parties import an_order, together

SELLER = "Aloe & Co. Skincare\n12 Orchard Road\nSingapore 238841"
ORDER = UUID("9f1c2b3d-4e5f-4a6b-8c7d-0e1f2a3b4c5d")
PAID_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SERUM = Item("Vitamin C Serum 30 ml", "serum-30", 2, 2450)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(endpoint: str) -> Iterator[Bucket]:
    with a_bucket(endpoint) as bucket:
        yield bucket


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.fixture
def options(shop_database: str, bucket: Bucket) -> dict[str, str]:
    return {
        "database_url": shop_database,
        "bucket": bucket.name,
        "seller": SELLER,
        "endpoint_url": bucket.endpoint,
        "region": REGION,
    }


@pytest.fixture
def generate(options: dict[str, str]) -> Iterator[GenerateInvoice]:
    with closing(GenerateInvoice(**options)) as handler:
        yield handler


def handle(handler: GenerateInvoice, order_id: UUID, **trial: Any) -> Outcome:
    return run(handler, a_job(order_id), inbox="after", name=GENERATE, **trial)


def a_job(order_id: UUID) -> Event[GenerateInvoicePdf]:
    return an_event(GenerateInvoicePdf(order_id=order_id))


def paid(shop: psycopg.Connection, *lines: Line) -> UUID:
    """An order that `mark_paid` has found to be paid, on 2026-01-02."""
    order_id = create_order(shop, a_checkout(f"key-{uuid4()}", lines or CART))
    costs = sum(line.quantity * line.unit_price for line in lines or CART)
    succeeded, _ = a_reported_payment(shop, order_id, amount=costs)
    with shop.transaction():
        mark_paid(succeeded, shop)
    return order_id


def key_of(order_id: UUID) -> str:
    return f"invoices/2026/01/{order_id}.pdf"


def an_invoice(*items: Item, **changes: Any) -> Invoice:
    facts = {
        "order_id": ORDER,
        "customer_id": uuid4(),
        "currency": "SGD",
        "ordered_at": PAID_AT - timedelta(days=1),
        "paid_at": PAID_AT,
        "transaction_id": "tx-1",
        "items": items or (SERUM,),
        **changes,
    }
    return Invoice(**facts)


def pages(document: bytes) -> list[str]:
    """What each page says, in one line."""
    return [" ".join(page.extract_text().split()) for page in PdfReader(BytesIO(document)).pages]


def written(invoice: Invoice, seller: Seller = seller_of(SELLER)) -> str:  # noqa: B008
    """What the invoice says, in one line."""
    return " ".join(pages(render(invoice, seller)))


# The whole way


def test_a_paid_order_has_its_invoice_in_the_bucket(
    shop: psycopg.Connection, generate: GenerateInvoice, bucket: Bucket
) -> None:
    order_id = paid(shop)
    ((customer_id, transaction_id, ordered_at),) = shop.execute(
        "SELECT customer_id, transaction_id, created_at FROM shop.orders "
        "JOIN shop.payments ON payments.id = paid_by"
    ).fetchall()

    assert handle(generate, order_id) == Done()

    assert bucket.keys() == [key_of(order_id)]
    (page,) = pages(bucket.read(key_of(order_id)))
    number = f"INV-20260102-{order_id.hex[:12].upper()}"
    assert "Aloe & Co. Skincare 12 Orchard Road Singapore 238841" in page
    assert f"Invoice number {number} Invoice date 2026-01-02 Order {order_id}" in page
    assert f"Ordered on {ordered_at.astimezone(UTC):%Y-%m-%d} Paid on 2026-01-02" in page
    assert f"Transaction {transaction_id}" in page
    assert f"Customer {customer_id}" in page
    assert "1 Vitamin C Serum 30 ml serum-30 2 24.50 49.00" in page
    assert "2 Lip Balm lip-balm 1 4.50 4.50" in page
    assert "Total SGD 53.50 Paid on 2026-01-02 SGD 53.50 Amount due SGD 0.00" in page
    assert "Page 1 of 1" in page


def test_the_object_says_what_it_is(
    shop: psycopg.Connection, generate: GenerateInvoice, bucket: Bucket
) -> None:
    order_id = paid(shop)
    handle(generate, order_id)

    stored = bucket.head(key_of(order_id))

    stored["Body"].close()
    assert stored["ContentType"] == "application/pdf"
    assert stored["ContentDisposition"] == (
        f'inline; filename="INV-20260102-{order_id.hex[:12].upper()}.pdf"'
    )


def test_a_crash_between_the_upload_and_the_mark_leaves_the_same_object(
    shop: psycopg.Connection, options: dict[str, str], bucket: Bucket
) -> None:
    order_id = paid(shop)
    documents = []
    for _ in range(2):  # a new process each time
        with closing(GenerateInvoice(**options)) as handler:
            assert handle(handler, order_id) == Done()
        documents.append(bucket.read(key_of(order_id)))

    assert bucket.keys() == [key_of(order_id)]
    assert documents[0] == documents[1]


def test_several_threads_write_the_same(
    shop: psycopg.Connection, generate: GenerateInvoice, bucket: Bucket
) -> None:
    order_id = paid(shop)
    handle(generate, order_id)
    document = bucket.read(key_of(order_id))

    assert together(lambda: handle(generate, order_id), 8) == [Done()] * 8

    assert bucket.read(key_of(order_id)) == document


def test_a_cancelled_order_keeps_the_invoice_of_its_payment(
    shop: psycopg.Connection, generate: GenerateInvoice, bucket: Bucket
) -> None:
    order_id = paid(shop)
    handle(generate, order_id)
    document = bucket.read(key_of(order_id))
    cancel_order(shop, order_id, "changed my mind")

    assert handle(generate, order_id) == Done()

    assert bucket.read(key_of(order_id)) == document


def test_an_invoice_leaves_no_effect_in_the_ledger(
    shop: psycopg.Connection, generate: GenerateInvoice
) -> None:
    order_id = paid(shop)
    before = number_of(shop, "effects")

    handle(generate, order_id)

    assert number_of(shop, "effects") == before


def test_names_and_prices_are_those_of_the_order_whatever_the_catalogue_says_by_now(
    shop: psycopg.Connection, generate: GenerateInvoice, bucket: Bucket
) -> None:
    order_id = paid(shop)
    handle(generate, order_id)
    issued = bucket.read(key_of(order_id))
    shop.execute("UPDATE shop.products SET price_minor = 1, name = 'Serum' WHERE sku = 'serum-30'")
    shop.execute("DELETE FROM shop.products WHERE sku = 'lip-balm'")

    assert handle(generate, order_id) == Done()

    assert bucket.read(key_of(order_id)) == issued
    (page,) = pages(issued)
    assert "1 Vitamin C Serum 30 ml serum-30 2 24.50 49.00" in page
    assert "2 Lip Balm lip-balm 1 4.50 4.50" in page


def test_a_line_from_before_names_were_stored_is_called_by_its_sku(
    shop: psycopg.Connection, generate: GenerateInvoice, bucket: Bucket
) -> None:
    order_id = paid(shop)
    shop.execute("UPDATE shop.order_items SET name = NULL WHERE line = 2")

    handle(generate, order_id)

    (page,) = pages(bucket.read(key_of(order_id)))
    assert "2 lip-balm lip-balm 1 4.50 4.50" in page


def test_an_order_whose_total_was_corrected_has_its_invoice_once_its_lines_are_too(
    shop: psycopg.Connection, generate: GenerateInvoice, bucket: Bucket
) -> None:
    order_id, succeeded, _ = a_paid_order(shop, amount=COSTS - 100)
    shop.execute("UPDATE shop.orders SET total_minor = total_minor - 100")
    assert run(mark_paid, succeeded, tx=shop) == Done()

    outcome = handle(generate, order_id)
    assert isinstance(outcome, DeadLetter)
    assert "an invoice has to add up" in outcome.error

    shop.execute("UPDATE shop.order_items SET unit_price_minor = 350 WHERE sku = 'lip-balm'")
    assert handle(generate, order_id) == Done()
    assert "53.50" not in bucket.read(key_of(order_id)).decode(errors="replace")


# Orders without one


def test_an_order_that_is_not_paid_yet_waits_longer_each_time(
    shop: psycopg.Connection, generate: GenerateInvoice, bucket: Bucket
) -> None:
    order_id, *_ = a_paid_order(shop)  # reported, and not marked yet

    waits = []
    for attempt in (1, 2, 3, 20):
        outcome = handle(generate, order_id, attempt=attempt, max_attempts=100)
        assert isinstance(outcome, Retry)
        assert "its payment has not been applied yet" in outcome.error
        waits.append(outcome.after_seconds)

    assert waits == [1, 2, 4, 300]
    assert bucket.keys() == []


def test_an_order_that_does_not_exist_needs_a_person(generate: GenerateInvoice) -> None:
    assert handle(generate, ORDER) == DeadLetter(
        error=f"Reject: there is no order {ORDER}: no invoice can be written"
    )


def test_an_order_that_was_cancelled_unpaid_has_none(
    shop: psycopg.Connection, generate: GenerateInvoice, bucket: Bucket
) -> None:
    order_id = create_order(shop, a_checkout())
    cancel_order(shop, order_id, "changed my mind")

    assert handle(generate, order_id) == DeadLetter(
        error=f"Reject: order {order_id} was cancelled before it was paid: it has no invoice"
    )
    assert bucket.keys() == []


def test_an_order_whose_payment_is_not_known_needs_a_person(
    shop: psycopg.Connection, generate: GenerateInvoice
) -> None:
    outcome = handle(generate, an_order(shop))

    assert isinstance(outcome, DeadLetter)
    assert "is paid by an unknown payment, which is not in shop.payments" in outcome.error


def an_order_as_found(**changes: Any) -> Order:
    facts = {
        "order_id": ORDER,
        "customer_id": uuid4(),
        "status": "paid",
        "currency": "SGD",
        "total": 4900,
        "ordered_at": PAID_AT,
        "paid_at": PAID_AT,
        "paid_by": uuid4(),
        "transaction_id": "tx-1",
        "items": (SERUM,),
        **changes,
    }
    return Order(**facts)


@pytest.mark.parametrize(
    ("changes", "decision"),
    [
        ({}, Write),
        ({"status": "cancelled"}, Write),
        ({"status": "pending", "paid_at": None, "paid_by": None, "transaction_id": None}, NotYet),
        ({"status": "cancelled", "paid_by": None, "transaction_id": None}, Never),
        ({"transaction_id": None}, Never),
        ({"paid_at": None}, Never),
        ({"total": 4901}, Never),
        ({"items": ()}, Never),
    ],
)
def test_what_is_known_of_an_order_decides(changes: dict[str, Any], decision: type[object]) -> None:
    assert isinstance(decide(ORDER, an_order_as_found(**changes)), decision)


def test_lines_that_do_not_add_up_are_told() -> None:
    assert decide(ORDER, an_order_as_found(total=1)) == Never(
        f"the lines of order {ORDER} cost 4900 SGD together, and its total is 1: "
        "an invoice has to add up"
    )


# Number and key


def test_the_key_and_the_number_go_by_the_day_in_utc() -> None:
    singapore = timezone(timedelta(hours=8))
    invoice = an_invoice(paid_at=datetime(2026, 2, 1, 7, 59, tzinfo=singapore))

    assert invoice.key == f"invoices/2026/01/{ORDER}.pdf"
    assert invoice.number == "INV-20260131-9F1C2B3D4E5F"
    assert "Paid on 2026-01-31" in written(invoice)


# The document


def test_the_same_facts_are_the_same_bytes() -> None:
    invoice = an_invoice()
    again = msgspec.json.decode(msgspec.json.encode(invoice), type=Invoice)

    assert render(invoice, seller_of(SELLER)) == render(again, seller_of(SELLER))


@pytest.mark.parametrize(
    ("currency", "unit_price", "amount"),
    [
        ("SGD", "1,234,567.89", "SGD 2,469,135.78"),
        ("JPY", "123,456,789", "JPY 246,913,578"),
        ("KWD", "123,456.789", "KWD 246,913.578"),
    ],
)
def test_amounts_have_the_decimals_of_their_currency(
    currency: str, unit_price: str, amount: str
) -> None:
    page = written(an_invoice(Item("Serum", "s", 2, 123456789), currency=currency))

    assert f"Serum s 2 {unit_price} {amount.removeprefix(currency + ' ')}" in page
    assert f"Total {amount} " in page


@pytest.mark.parametrize(
    ("minor", "text"), [(0, "0.00"), (5, "0.05"), (99999, "999.99"), (100000, "1,000.00")]
)
def test_small_amounts_keep_their_zeros(minor: int, text: str) -> None:
    assert figure(minor, "SGD") == text


def test_a_hundred_lines_span_pages_that_each_have_the_head_of_the_table() -> None:
    items = [Item(f"Article {number}", f"sku-{number}", 1, number) for number in range(1, 101)]

    told = pages(render(an_invoice(*items), seller_of(SELLER)))

    assert len(told) > 2
    for number, page in enumerate(told, start=1):
        assert "# Article Quantity Unit price (SGD) Amount (SGD)" in page
        assert f"Page {number} of {len(told)}" in page
        assert "INV-20260102-9F1C2B3D4E5F" in page
    found = re.findall(r"Article (\d+) sku-\d+ 1", " ".join(told))
    assert [int(number) for number in found] == list(range(1, 101))
    assert ["Total SGD 50.50" in page for page in told] == [*[False] * (len(told) - 1), True]


@pytest.mark.parametrize("lines", range(8, 24))
def test_the_sums_are_never_alone_on_a_page(lines: int) -> None:
    items = [Item(f"Article {number}", "sku", 1, 1) for number in range(1, lines + 1)]

    last = pages(render(an_invoice(*items), seller_of(SELLER)))[-1]

    assert f"Article {lines} sku" in last
    assert "Amount due" in last


def test_a_long_name_is_wrapped() -> None:
    name = "Daily moisturizer " + "with ceramides " * 10
    (page,) = PdfReader(BytesIO(render(an_invoice(Item(name, "s", 1, 1)), seller_of(SELLER)))).pages

    lines = [line for line in page.extract_text().splitlines() if "ceramides" in line]

    assert len(lines) > 2
    assert name.strip() in " ".join(page.extract_text().split())


def test_the_widest_ids_fit_into_a_line() -> None:
    widest = UUID("00000000-0000-4000-8000-000000000000")

    page = written(an_invoice(order_id=widest, customer_id=widest, transaction_id=f"tx-{widest}"))

    assert f"Transaction tx-{widest} #" in page
    assert f"Order {widest} Ordered on" in page
    assert f"Customer {widest} Invoice number" in page


def test_a_name_that_would_fill_the_page_is_shortened() -> None:
    name = "W" * 10_000

    page = written(an_invoice(Item(name, "S" * 64, 100, 10**8), transaction_id="x" * 255))

    assert 0 < page.count("W") < 300
    assert "…" in page
    assert page.count("x") >= 255


def test_what_looks_like_markup_is_told_as_it_is() -> None:
    name = "<b>Balm</b> & <img src='x'/> &amp; %s {0}"

    assert name in written(an_invoice(Item(name, "<a>&", 1, 1)))


def test_letters_that_the_font_has_are_kept_composed_or_not() -> None:
    assert "Crème brûlée, Größe €5" in written(
        an_invoice(Item("Cre\N{COMBINING GRAVE ACCENT}me brûlée, Größe €5", "s", 1, 1))
    )


def test_letters_that_the_font_lacks_are_seen_to_be_missing() -> None:
    assert "1 ?????? Crème mask-5 3" in written(
        an_invoice(Item("シートマスク Crème", "mask-5", 3, 1))
    )


@given(st.text(max_size=400))
def test_any_text_comes_down_to_a_line_of_known_letters(text: str) -> None:
    line = printable(text, 100)

    assert len(line) <= 100
    assert line == " ".join(line.split())
    assert printable(line, 100) == line


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=400), st.text(min_size=1, max_size=64))
def test_any_name_can_be_written(name: str, sku: str) -> None:
    assert "Amount due" in written(an_invoice(Item(name, sku, 1, 1)))


def test_the_seller_has_a_tax_number_if_there_is_one() -> None:
    assert "Tax number" not in written(an_invoice())
    assert "Tax number GST M9" in written(an_invoice(), seller_of(SELLER, "GST M9"))


def test_the_document_is_called_by_its_number() -> None:
    about = PdfReader(BytesIO(render(an_invoice(), seller_of(SELLER)))).metadata

    assert about is not None
    assert about.title == "Invoice INV-20260102-9F1C2B3D4E5F"
    assert about.author == "Aloe & Co. Skincare"


# S3 and its moods


def store(mood: MoodyS3, **changes: Any) -> InvoiceStore:
    return InvoiceStore("invoices-of-shop", region=REGION, endpoint_url=mood.endpoint, **changes)


def put(store: InvoiceStore, seconds_left: float = 60.0) -> None:
    store.put("invoices/1.pdf", b"%PDF", file_name="1.pdf", seconds_left=seconds_left)


@pytest.mark.parametrize(
    "answer",
    [(500, "InternalError"), (503, "SlowDown"), (503, "ServiceUnavailable"), None],
    ids=["500", "throttled", "503", "cut"],
)
def test_an_outage_is_asked_again_once_and_then_left_to_the_daemon(
    answer: tuple[int, str] | None,
) -> None:
    with moody_s3(lambda: answer) as mood, closing(store(mood)) as away:
        with pytest.raises(NotStored, match=r"invoices/1\.pdf was not stored in bucket invoices-"):
            put(away)

        assert mood.requests == 2

        mood.answer = lambda: (200, "")
        put(away)


def test_an_outage_costs_an_attempt_and_no_invoice(
    shop: psycopg.Connection, options: dict[str, str]
) -> None:
    order_id = paid(shop)
    with moody_s3(lambda: (503, "SlowDown")) as mood:
        moody = {**options, "endpoint_url": mood.endpoint}
        with closing(GenerateInvoice(**moody)) as handler:
            outcome = handle(handler, order_id)
            assert isinstance(outcome, Retry)
            assert "SlowDown: so it is" in outcome.error

            mood.answer = lambda: (200, "")
            assert handle(handler, order_id) == Done()


def test_an_s3_that_never_answers_is_left() -> None:
    gone = threading.Event()

    def think() -> None:
        gone.wait()

    with moody_s3(think) as mood, closing(store(mood, read_seconds=0.1)) as slow:
        with pytest.raises(NotStored, match="Read timeout"):
            put(slow)
        gone.set()


def test_an_s3_that_is_not_there_is_told_by_its_address() -> None:
    away = InvoiceStore("invoices-of-shop", region=REGION, endpoint_url="http://127.0.0.1:9")
    with closing(away), pytest.raises(NotStored, match=r"127\.0\.0\.1:9"):
        put(away)


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (403, "AccessDenied", r"allow s3:PutObject on invoices-of-shop/invoices/\* to the role"),
        (404, "NoSuchBucket", "create it, or correct the option `bucket`"),
        (400, "AuthorizationHeaderMalformed", "set the option `region` to that of the bucket"),
    ],
)
def test_a_refusal_says_what_to_mend_and_is_not_asked_twice(
    status: int, code: str, advice: str
) -> None:
    with (
        moody_s3(lambda: (status, code)) as mood,
        closing(store(mood)) as refused,
        pytest.raises(
            NotStored,
            match=rf"1\.pdf was not stored in bucket invoices-of-shop \({code}: .*\): {advice}",
        ),
    ):
        put(refused)

    assert mood.requests == 1


def test_a_bucket_that_is_made_later_gets_the_invoice_of_the_retry(
    shop: psycopg.Connection, options: dict[str, str], endpoint: str
) -> None:
    order_id = paid(shop)
    name = f"later-{uuid4()}"
    with closing(GenerateInvoice(**{**options, "bucket": name})) as handler:
        outcome = handle(handler, order_id)
        assert isinstance(outcome, Retry)
        assert f"bucket {name} (NoSuchBucket" in outcome.error

        with closing(Bucket(endpoint, name)) as late:
            assert handle(handler, order_id) == Done()
            assert late.keys() == [key_of(order_id)]


def test_no_upload_is_begun_that_could_outlast_the_handlers_time(
    shop: psycopg.Connection, generate: GenerateInvoice, bucket: Bucket
) -> None:
    outcome = handle(generate, paid(shop), timeout_seconds=LONGEST_SECONDS - 1)

    assert isinstance(outcome, Retry)
    assert "a larger timeout_seconds helps" in outcome.error
    assert bucket.keys() == []


def test_no_transaction_is_open_while_s3_thinks(
    shop: psycopg.Connection, options: dict[str, str]
) -> None:
    order_id = paid(shop)
    states: list[tuple[str]] = []

    def look() -> tuple[int, str]:
        states.extend(
            shop.execute(
                "SELECT state FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            ).fetchall()
        )
        return 200, ""

    with (
        moody_s3(look) as mood,
        closing(GenerateInvoice(**{**options, "endpoint_url": mood.endpoint})) as handler,
    ):
        assert handle(handler, order_id) == Done()

    assert states != []
    assert {state for (state,) in states} == {"idle"}


# Options


@pytest.mark.parametrize(
    ("seller", "words"),
    [
        ("", "found 1 lines"),
        ("Only a name", "found 1 lines"),
        ("Shop\n" + "line\n" * 9, "found 10 lines"),
        ("Shop\n" + "x" * 121, "the longest of 121 characters"),
    ],
)
def test_a_seller_without_name_or_address_is_told_at_the_start(seller: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        seller_of(seller)


def test_a_bucket_without_a_name_is_told_at_the_start() -> None:
    with pytest.raises(ValueError, match="`bucket` is empty"):
        GenerateInvoice(database_url="", bucket="", seller=SELLER)


def test_the_handler_is_constructed_while_everything_is_away(tmp_path: Path) -> None:
    handler = GenerateInvoice(
        database_url=f"host={tmp_path} dbname=shop",
        bucket="invoices-of-shop",
        seller=SELLER,
        tax_number="",  # of "${TAX_NUMBER:-}"
        region="",
        endpoint_url="",
    )

    handler.close()
