"""What config/shop.toml says in its comments: who waits for how long, and for whom nobody waits."""

from fnmatch import fnmatchcase
from uuid import uuid4

import psycopg
import pytest

from handlers.events import EVENTS, GENERATE_INVOICE_PDF, JOBS, ORDER, ProcessPayment
from handlers.payments import process_payment
from outboxd import Retry
from outboxd.adapters.configuration import load_settings
from outboxd.core.retry import Backoff
from outboxd.core.routes import RouteTable
from outboxd.core.settings import Settings
from outboxd.resources import project_directory
from outboxd.testing import run
from tests.shop.customers import an_event
from tests.shop.production import PRODUCTION

SHOP = project_directory() / "config" / "shop.toml"

MINUTE = 60.0


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load_settings(SHOP, PRODUCTION)


def patience(settings: Settings, queue: str) -> tuple[float, float]:
    """The shortest and the longest time in seconds from the first attempt to the last."""
    it = settings.queues[queue]
    assert it.backoff.jitter == "equal"
    backoff = Backoff(first_seconds=it.backoff.first_seconds, cap_seconds=it.backoff.cap_seconds)
    failed = range(1, it.max_attempts)
    shortest = sum(backoff.delay(attempt, lambda: 1.0) for attempt in failed)
    return shortest, sum(backoff.delay(attempt, lambda: 0.0) for attempt in failed)


def test_the_courier_may_be_away_for_about_an_hour(settings: Settings) -> None:
    shortest, longest = patience(settings, "shipping-events")

    assert (round(shortest / MINUTE), round(longest / MINUTE)) == (57, 114)


def test_a_payment_waits_for_its_order_for_two_to_four_minutes(settings: Settings) -> None:
    assert patience(settings, "payment-events") == (127, 254)


def test_process_payment_waits_longer_than_mark_paid_is_tried(
    settings: Settings, shop: psycopg.Connection
) -> None:
    job = an_event(ProcessPayment(event_id=uuid4()))
    most = settings.queues["jobs"].max_attempts

    waits = 0.0
    for attempt in range(1, most):
        outcome = run(process_payment, job, tx=shop, attempt=attempt, max_attempts=most)
        assert isinstance(outcome, Retry)
        assert outcome.after_seconds is not None
        waits += outcome.after_seconds

    assert 55 * MINUTE < waits < 60 * MINUTE
    assert waits > 10 * patience(settings, "payment-events")[1]


def test_while_the_bucket_hangs_nothing_else_waits(settings: Settings) -> None:
    """A job that takes half a minute, and all others, would share one queue's concurrency."""
    assert settings.relay is not None
    routes = RouteTable(settings.relay.routes)
    ways = {name: routes.find(name, "job") for name in JOBS}

    assert {name: way and way.to for name, way in ways.items()} == {
        **dict.fromkeys(JOBS, ("sqs:jobs",)),
        GENERATE_INVOICE_PDF: ("sqs:invoice-jobs",),
    }
    assert {way and way.envelope for way in ways.values()} == {"job"}
    assert [each.event for each in settings.queues["invoice-jobs"].handlers] == [
        GENERATE_INVOICE_PDF
    ]


def test_nobody_listens_to_what_the_page_says_that_nobody_listens_to(settings: Settings) -> None:
    assert settings.relay is not None
    routes = RouteTable(settings.relay.routes)
    globs = [
        glob for rule in settings.destinations.eventbridge["shop"].rules for glob in rule.events
    ]
    deaf = {name for name in EVENTS if not any(fnmatchcase(name, glob) for glob in globs)}

    page = (project_directory() / "docs" / "shop.md").read_text(encoding="utf-8")
    assert deaf == {"payment.refund_due", "stock.rejected", "stock.reserved", "shipment.requested"}
    for name in ("payment.refund_due", "stock.rejected"):
        way = routes.find(name, ORDER)
        assert way is not None
        assert way.to == ("eventbridge:shop",)
        assert f"`{name}` says" in page
