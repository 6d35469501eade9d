"""Confirmation e-mails: real messages in a real mailbox, recognisable when they repeat."""

import email
import email.policy
from email.message import EmailMessage
from pathlib import Path
from threading import Barrier, Thread
from uuid import UUID, uuid4

import msgspec
import pytest

from handlers.events import SendConfirmationEmail
from handlers.notifications import ConfirmationEmail, RequestedConfirmationEmail, message_id
from outboxd import Context
from outboxd.core.envelopes import Incoming
from outboxd.ports.handling import Call
from tests.shop.customers import a_success, an_event

SENDER = "Shop <orders@shop.example>"
HANDLER = "notification.confirmation_email"


def a_context(event_id: UUID, attempt: int = 1) -> Context:
    incoming = Incoming(
        id=event_id,
        type="any",
        aggregate_type="order",
        aggregate_id="any",
        occurred_at=an_event(None).occurred_at,
        payload=msgspec.Raw(b"{}"),
    )
    return Context(HANDLER, Call(incoming=incoming, queue="any", attempt=attempt, deadline=0.0))


def delivered(mailbox: Path) -> list[EmailMessage]:
    return [
        email.message_from_bytes(path.read_bytes(), EmailMessage, policy=email.policy.default)
        for path in sorted((mailbox / "new").iterdir())
    ]


def test_a_payment_sends_the_customer_one_readable_message(tmp_path: Path) -> None:
    order_id = uuid4()
    event = a_success(order_id)

    ConfirmationEmail(sender=SENDER, mail_directory=str(tmp_path))(event, a_context(event.id))

    (message,) = delivered(tmp_path)
    assert message["From"] == SENDER
    assert message["To"] == f"order-{order_id}@customers.shop.example"
    assert message["X-Order-ID"] == str(order_id)
    assert str(order_id) in message.get_content()
    assert message["Date"].datetime.tzinfo is not None


def test_every_attempt_for_one_event_has_the_same_message_id(tmp_path: Path) -> None:
    send = ConfirmationEmail(sender=SENDER, mail_directory=str(tmp_path))
    event, other = a_success(uuid4()), a_success(uuid4())

    send(event, a_context(event.id))
    send(event, a_context(event.id, attempt=2))
    send(other, a_context(other.id))

    assert sorted({str(message["Message-ID"]) for message in delivered(tmp_path)}) == sorted(
        f"<{each.id}.{HANDLER}@shop.example>" for each in (event, other)
    )
    assert len(delivered(tmp_path)) == 3


def test_a_customer_who_asks_gets_the_message_again(tmp_path: Path) -> None:
    job = an_event(SendConfirmationEmail(order_id=uuid4()))

    RequestedConfirmationEmail(sender=SENDER, mail_directory=str(tmp_path))(job, a_context(job.id))

    assert delivered(tmp_path)[0]["X-Order-ID"] == str(job.payload.order_id)


def test_handlers_in_several_threads_lose_no_message(tmp_path: Path) -> None:
    send = ConfirmationEmail(sender=SENDER, mail_directory=str(tmp_path))
    together = Barrier(8)

    def handle() -> None:
        event = a_success(uuid4())
        together.wait()
        send(event, a_context(event.id))

    threads = [Thread(target=handle) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(delivered(tmp_path)) == 8


@pytest.mark.parametrize("sender", ["", "Shop", "orders@", "shop.example"])
def test_a_sender_that_is_no_address_is_told_at_the_start(sender: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"set `options\.sender`"):
        ConfirmationEmail(sender=sender, mail_directory=str(tmp_path))


def test_a_message_id_has_only_characters_that_need_no_quoting() -> None:
    assert message_id("a1-b2:send mail/first", "shop.example") == (
        "<a1-b2.send.mail.first@shop.example>"
    )
