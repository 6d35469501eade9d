"""What customers are told: once for each order and reason, and rather twice than never."""

import logging
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from handlers.connections import STORE_SECONDS
from handlers.events import NotificationRequested, SendConfirmationEmail
from handlers.money import amount
from handlers.notifications import (
    ConfirmationEmail,
    RequestedConfirmationEmail,
    RequestedNotification,
    message_id,
)
from handlers.notifications.channels import EmailChannel
from handlers.notifications.templates import TEMPLATES
from outboxd import DeadLetter, Done, Event, Retry
from outboxd.core.outcomes import Outcome
from outboxd.demo.mail import MailReader
from outboxd.demo.partners import Partners
from outboxd.demo.partners.book import Service
from outboxd.demo.partners.faults import Fault
from outboxd.demo.post_office import PostOffice, post_office
from outboxd.testing import run
from tests.shop.customers import an_event
from tests.shop.parties import (
    CUSTOMER,
    SENDER,
    a_payment_of,
    an_order,
    delivered,
    failing_inserts,
    statuses,
    together,
)

CONFIRM = "notification.confirmation_email"
REQUESTED = "notification.requested"
TOKEN = "s3cret-token"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[PostOffice]:
    with post_office(tmp_path / "mail", tmp_path / "log") as running:
        yield running


@pytest.fixture
def smtp(office: PostOffice) -> dict[str, Any]:
    # The port as a text, which is what a configuration takes from the environment.
    return {
        "transport": "smtp",
        "host": office.host,
        "port": str(office.port),
        "sender": SENDER,
    }


@pytest.fixture
def confirm(shop_database: str, smtp: dict[str, Any]) -> Iterator[ConfirmationEmail]:
    with closing(ConfirmationEmail(database_url=shop_database, **smtp)) as handler:
        yield handler


@pytest.fixture
def notify(
    shop_database: str, smtp: dict[str, Any], partners: Partners
) -> Iterator[RequestedNotification]:
    handler = RequestedNotification(
        database_url=shop_database,
        whatsapp_url=partners.base_url(Service.WHATSAPP),
        whatsapp_token=TOKEN,
        push_url=partners.base_url(Service.PUSH),
        timeout_seconds="5",
        **smtp,
    )
    with closing(handler):
        yield handler


def a_request(
    order_id: UUID, channel: str, template: str, customer_id: UUID = CUSTOMER
) -> Event[NotificationRequested]:
    return an_event(
        NotificationRequested(
            channel=channel, template=template, customer_id=customer_id, order_id=order_id
        )
    )


def handle(handler: Any, event: Event[Any], name: str = REQUESTED, **how: Any) -> Outcome:
    return run(handler, event, inbox="after", name=name, **how)


def message_id_of(order_id: UUID, template: str = "payment_success") -> str:
    return f"<email.{template}.{order_id}@shop.example>"


def marks(shop: psycopg.Connection) -> list[str]:
    rows = shop.execute("SELECT notification_type FROM shop.order_notifications ORDER BY 1")
    return [kind for (kind,) in rows]


# A payment


def test_a_payment_sends_the_customer_one_readable_message(
    shop: psycopg.Connection, confirm: ConfirmationEmail, office: PostOffice
) -> None:
    order_id = an_order(shop)

    assert handle(confirm, a_payment_of(order_id), CONFIRM) == Done()

    (message,) = delivered(office.maildir)
    assert message["From"] == SENDER
    assert message["To"] == f"order-{order_id}@customers.shop.example"
    assert message["Subject"] == "Your payment has arrived"
    assert message["X-Order-ID"] == str(order_id)
    assert message["X-Template"] == "payment_success"
    assert message["Message-ID"] == message_id_of(order_id)
    assert message["Date"].datetime.tzinfo is not None
    assert str(order_id) in message.get_content()
    assert marks(shop) == ["email:payment_success"]


def test_the_demo_finds_the_message_in_the_mailbox(
    shop: psycopg.Connection, confirm: ConfirmationEmail, office: PostOffice
) -> None:
    order_id = an_order(shop)
    handle(confirm, a_payment_of(order_id), CONFIRM)

    mail = MailReader(office.maildir).read()

    assert (mail.orders, mail.sent, mail.repeated) == (frozenset({str(order_id)}), 1, 0)


def test_a_crash_between_sending_and_marking_sends_the_same_message_again(
    shop: psycopg.Connection, confirm: ConfirmationEmail, office: PostOffice
) -> None:
    order_id = an_order(shop)
    event = a_payment_of(order_id)
    with failing_inserts(shop, "order_notifications"):
        assert isinstance(handle(confirm, event, CONFIRM), Retry)

    assert handle(confirm, event, CONFIRM, attempt=2) == Done()

    assert [message["Message-ID"] for message in delivered(office.maildir)] == [
        message_id_of(order_id)
    ] * 2


def test_after_the_mark_nothing_is_sent(
    shop: psycopg.Connection, confirm: ConfirmationEmail, office: PostOffice
) -> None:
    order_id = an_order(shop)
    event = a_payment_of(order_id)
    handle(confirm, event, CONFIRM)

    assert handle(confirm, event, CONFIRM) == Done()
    assert handle(confirm, a_payment_of(order_id), CONFIRM) == Done()

    assert len(delivered(office.maildir)) == 1


def test_both_styles_together_tell_the_customer_once(
    shop: psycopg.Connection,
    confirm: ConfirmationEmail,
    notify: RequestedNotification,
    office: PostOffice,
) -> None:
    order_id = an_order(shop)

    handle(notify, a_request(order_id, "email", "payment_success"))
    handle(confirm, a_payment_of(order_id), CONFIRM)

    assert len(delivered(office.maildir)) == 1


def test_deliveries_at_once_are_one_message_to_the_customer(
    shop: psycopg.Connection, confirm: ConfirmationEmail, office: PostOffice
) -> None:
    order_id = an_order(shop)
    event = a_payment_of(order_id)

    outcomes = together(lambda: handle(confirm, event, CONFIRM), 4)

    assert outcomes == [Done()] * 4
    ids = {str(message["Message-ID"]) for message in delivered(office.maildir)}
    assert ids == {message_id_of(order_id)}
    assert marks(shop) == ["email:payment_success"]


def test_two_payments_of_an_order_at_once_are_one_message_to_the_customer(
    shop: psycopg.Connection,
    confirm: ConfirmationEmail,
    office: PostOffice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither has seen the other's mark when it sends."""
    order_id = an_order(shop)
    payments = [a_payment_of(order_id), a_payment_of(order_id)]
    both_send, send = threading.Barrier(2), EmailChannel.send

    def send_with_the_other(self: EmailChannel, *args: Any) -> None:
        both_send.wait(30)
        send(self, *args)

    monkeypatch.setattr(EmailChannel, "send", send_with_the_other)

    outcomes = together(lambda: handle(confirm, payments.pop(), CONFIRM), 2)

    assert outcomes == [Done(), Done()]
    ids = [str(message["Message-ID"]) for message in delivered(office.maildir)]
    assert ids == [message_id_of(order_id)] * 2
    assert marks(shop) == ["email:payment_success"]


def test_many_messages_at_once_all_arrive(
    shop: psycopg.Connection, confirm: ConfirmationEmail, office: PostOffice
) -> None:
    def tell_another() -> Outcome:
        return handle(confirm, events.pop(), CONFIRM)

    events = [a_payment_of(an_order(shop)) for _ in range(8)]

    assert together(tell_another, 8) == [Done()] * 8
    assert len(MailReader(office.maildir).read().orders) == 8


def test_an_order_that_does_not_exist_is_done_with_a_warning(
    confirm: ConfirmationEmail, office: PostOffice, caplog: pytest.LogCaptureFixture
) -> None:
    event = a_payment_of(uuid4())

    with caplog.at_level(logging.WARNING):
        assert handle(confirm, event, CONFIRM) == Done()

    (record,) = caplog.records
    assert record.message == "order not found, nobody told"
    assert vars(record)["order_id"] == str(event.payload.order_id)
    assert delivered(office.maildir) == []


# A customer who asks


def test_a_customer_who_asks_is_sent_the_confirmation(
    shop: psycopg.Connection, shop_database: str, smtp: dict[str, Any], office: PostOffice
) -> None:
    job = an_event(SendConfirmationEmail(order_id=an_order(shop, total=5350)))

    with closing(RequestedConfirmationEmail(database_url=shop_database, **smtp)) as send:
        assert handle(send, job, "notification.send_confirmation") == Done()

    (message,) = delivered(office.maildir)
    assert message["X-Template"] == "order_confirmation"
    assert "SGD 53.50" in message.get_content()
    assert marks(shop) == ["email:order_confirmation"]


# Requested notifications


@pytest.mark.parametrize("service", [Service.WHATSAPP, Service.PUSH])
@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_a_service_is_asked_to_tell_the_customer(
    shop: psycopg.Connection,
    notify: RequestedNotification,
    partners: Partners,
    service: Service,
    template: str,
) -> None:
    order_id = an_order(shop)
    event = a_request(order_id, service, template)

    assert handle(notify, event) == Done()

    key = f"{service}:{template}:{order_id}"
    (told,) = (each for each in partners.accepted(service) if each.key == key)
    text = told.content.pop("text")
    assert str(order_id) in str(text)
    assert told.content == {
        "to": str(CUSTOMER),
        "template": template,
        "order_id": str(order_id),
    }
    assert marks(shop) == [f"{service}:{template}"]


def test_a_shipped_order_comes_with_its_number(
    shop: psycopg.Connection, notify: RequestedNotification, office: PostOffice
) -> None:
    order_id = an_order(shop)
    shop.execute(
        "INSERT INTO shop.shipments (id, order_id, tracking_number) VALUES (%s, %s, 'SG42')",
        (uuid4(), order_id),
    )

    handle(notify, a_request(order_id, "email", "shipped"))

    assert "Its tracking number is SG42." in delivered(office.maildir)[0].get_content()


def test_channels_and_templates_are_told_apart(
    shop: psycopg.Connection, notify: RequestedNotification
) -> None:
    order_id = an_order(shop)

    for channel, template in (
        ("push", "shipped"),
        ("whatsapp", "shipped"),
        ("push", "payment_success"),
    ):
        assert handle(notify, a_request(order_id, channel, template)) == Done()

    assert marks(shop) == ["push:payment_success", "push:shipped", "whatsapp:shipped"]


@pytest.mark.parametrize(
    ("channel", "template", "words"),
    [
        ("fax", "shipped", "there is no channel 'fax': expected one of email, push, whatsapp"),
        (
            "email",
            "birthday",
            "there is no template 'birthday': expected one of order_confirmation, "
            "payment_success, shipped",
        ),
        (
            "email",
            "a\r\nBcc: all@shop.example",
            "there is no template 'a\\r\\nBcc: all@shop.example'",
        ),
    ],
)
def test_a_name_that_nobody_knows_needs_a_person(
    shop: psycopg.Connection,
    notify: RequestedNotification,
    office: PostOffice,
    channel: str,
    template: str,
    words: str,
) -> None:
    outcome = handle(notify, a_request(an_order(shop), channel, template))

    assert isinstance(outcome, DeadLetter)
    assert outcome.error.startswith(f"Reject: {words}")
    assert (delivered(office.maildir), marks(shop)) == ([], [])


def test_a_name_that_nobody_knows_is_found_before_the_order_is_missed(
    notify: RequestedNotification,
) -> None:
    assert isinstance(handle(notify, a_request(uuid4(), "email", "birthday")), DeadLetter)


def test_a_channel_that_is_not_configured_is_refused(
    shop: psycopg.Connection, shop_database: str, smtp: dict[str, Any]
) -> None:
    with closing(RequestedNotification(database_url=shop_database, **smtp)) as notify:
        outcome = handle(notify, a_request(an_order(shop), "push", "shipped"))

    assert isinstance(outcome, DeadLetter)
    assert "there is no channel 'push': expected one of email" in outcome.error


def test_nobody_is_told_of_the_order_of_another_customer(
    shop: psycopg.Connection, notify: RequestedNotification, office: PostOffice
) -> None:
    outcome = handle(notify, a_request(an_order(shop), "email", "shipped", customer_id=uuid4()))

    assert isinstance(outcome, DeadLetter)
    assert "is not of customer" in outcome.error
    assert delivered(office.maildir) == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500),
        Fault(status=429),
        Fault(drop=True, when="after"),
        Fault(delay_seconds=3000),
    ],
    ids=["500", "429", "answer lost", "timeout"],
)
def test_a_service_in_trouble_is_asked_again_with_the_same_key(
    shop: psycopg.Connection, notify: RequestedNotification, partners: Partners, fault: Fault
) -> None:
    """And leaves the time that it takes to mark what was sent."""
    order_id = an_order(shop)
    event = a_request(order_id, "whatsapp", "payment_success")
    with partners.fault(fault):
        assert isinstance(handle(notify, event, timeout_seconds=STORE_SECONDS + 0.5), Retry)
    assert marks(shop) == []

    assert handle(notify, event, attempt=2) == Done()

    key = f"whatsapp:payment_success:{order_id}"
    accepted = [each for each in partners.accepted(Service.WHATSAPP) if each.key == key]
    assert len(accepted) == 1


def test_a_crash_after_a_service_has_sent_repeats_the_request_under_the_same_key(
    shop: psycopg.Connection, notify: RequestedNotification, partners: Partners
) -> None:
    order_id = an_order(shop)
    event = a_request(order_id, "push", "shipped")
    with failing_inserts(shop, "order_notifications"):
        assert isinstance(handle(notify, event), Retry)

    assert handle(notify, event, attempt=2) == Done()
    assert handle(notify, event, attempt=2) == Done()

    assert statuses(partners, Service.PUSH, f"push:shipped:{order_id}") == [201, 200]


def test_what_a_service_refuses_is_told_in_its_words_and_without_the_token(
    shop: psycopg.Connection, notify: RequestedNotification, partners: Partners
) -> None:
    with partners.fault(Fault(status=403, words=f"{TOKEN} may not write to this number")):
        outcome = handle(notify, a_request(an_order(shop), "whatsapp", "shipped"))

    assert outcome == DeadLetter(
        error="Reject: the whatsapp service refused this (403: *** may not write to this number)"
    )


# Texts and settings


@pytest.mark.parametrize(
    ("minor", "currency", "text"),
    [
        (5350, "SGD", "SGD 53.50"),
        (5, "EUR", "EUR 0.05"),
        (5350, "JPY", "JPY 5350"),
        (5350, "KWD", "KWD 5.350"),
        (0, "SGD", "SGD 0.00"),
    ],
)
def test_an_amount_is_written_in_its_currencys_way(minor: int, currency: str, text: str) -> None:
    assert amount(minor, currency) == text


@pytest.mark.parametrize(
    "sender", ["", "Shop", "orders@", "shop.example", "Shop <orders@shop.example>\r\nBcc: all@shop"]
)
def test_a_sender_that_is_no_address_is_told_at_the_start(sender: str, shop_database: str) -> None:
    with pytest.raises(ValueError, match=r"set `options\.sender`"):
        ConfirmationEmail(
            database_url=shop_database, transport="smtp", host="127.0.0.1", sender=sender
        )


def test_notifications_without_any_channel_are_a_mistake(shop_database: str) -> None:
    with pytest.raises(ValueError, match="no channel is configured"):
        RequestedNotification(database_url=shop_database)


def test_a_message_id_has_only_characters_that_need_no_quoting() -> None:
    assert message_id("a1-b2:send mail/first", "shop.example") == (
        "<a1-b2.send.mail.first@shop.example>"
    )
