"""Mailboxes, read as ledgers."""

from collections.abc import Iterator
from email.message import EmailMessage
from mailbox import Maildir
from pathlib import Path

import boto3
import pytest

from handlers.notifications.ses import SesTransport
from handlers.notifications.transports import Ses
from outboxd.demo.mail import MailReader
from outboxd.demo.s3_and_ses import BUCKET, SENDER, Documents, S3AndSes, s3_and_ses


def a_message(order_id: str, message_id: str) -> EmailMessage:
    message = EmailMessage()
    message["Message-ID"] = message_id
    message["X-Order-ID"] = order_id
    message["To"] = "ada@customers.shop.example"
    message["Subject"] = "thank you"
    message.set_content("thank you")
    return message


def test_a_maildir_is_read_again_and_again_and_each_message_counted_once(tmp_path: Path) -> None:
    reader = MailReader(tmp_path / "mail")
    assert reader.read().sent == 0
    mailbox = Maildir(tmp_path / "mail")

    mailbox.add(a_message("1", "<a@shop.example>"))
    assert reader.read().sent == 1
    mailbox.add(a_message("1", "<a@shop.example>"))
    mailbox.add(a_message("2", "<b@shop.example>"))

    mail = reader.read()
    assert (mail.orders, mail.sent, mail.message_ids) == (frozenset({"1", "2"}), 3, 2)
    assert (mail.repeated, mail.different_for_one_order) == (1, 0)


def test_an_email_that_is_still_being_written_does_not_count(tmp_path: Path) -> None:
    Maildir(tmp_path / "mail").add(a_message("1", "<a@shop.example>"))
    (tmp_path / "mail" / "tmp" / "half").write_text("Message-ID: <a@b>\n")

    assert MailReader(tmp_path / "mail").read().sent == 1


def test_a_second_message_id_for_an_order_is_told_apart(tmp_path: Path) -> None:
    mailbox = Maildir(tmp_path / "mail")
    mailbox.add(a_message("1", "<a@shop.example>"))
    mailbox.add(a_message("1", "<b@shop.example>"))

    mail = MailReader(tmp_path / "mail").read()

    assert (mail.repeated, mail.different_for_one_order) == (0, 1)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3AndSes]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with s3_and_ses(tmp_path / "log") as served:
        yield served


def test_what_was_sent_by_ses_and_stored_in_s3_is_counted(served: S3AndSes) -> None:
    transport = SesTransport(Ses(sender=SENDER, region="us-east-1", endpoint_url=served.endpoint))
    for order_id in ("1", "1", "2"):
        message = a_message(order_id, f"<{order_id}@shop.example>")
        transport.send(message, sender=SENDER, seconds_left=10)
    s3 = boto3.client("s3", endpoint_url=served.endpoint, region_name="us-east-1")
    for key in ("invoices/1.pdf", "invoices/1.pdf", "invoices/2.pdf", "invoices/2026/2.pdf"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"%PDF")
    s3.close()

    mail = served.mail()

    assert (mail.orders, mail.sent, mail.repeated) == (frozenset({"1", "2"}), 3, 1)
    assert served.mail() == mail
    assert served.documents() == Documents(stored=3, orders=2)
