"""The demo's arithmetic: what was made, what became of it, and what must not be there."""

from collections.abc import Iterator
from email.message import EmailMessage
from mailbox import Maildir
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from outboxd.demo.counting import Count, QueueDepth, count, count_outbox
from outboxd.demo.mail import MailReader
from outboxd.demo.shopper import Purchase

ORDERS = 3
EMPTY = {"orders": QueueDepth()}


@pytest.fixture
def shop(shop_database: str) -> Iterator[psycopg.Connection]:
    """Three purchases, none of which anything has become of yet."""
    with psycopg.connect(shop_database, autocommit=True) as connection:
        for number in range(1, ORDERS + 1):
            Purchase(1, number).make(connection)
        yield connection


def counted(
    shop: psycopg.Connection,
    mail: Path,
    queues: dict[str, QueueDepth] = EMPTY,
    dead_letters: dict[str, QueueDepth] = EMPTY,
) -> Count:
    return count(
        shop,
        "outboxd",
        outbox=count_outbox(shop, "outboxd"),
        queues=queues,
        dead_letters=dead_letters,
        mail=MailReader(mail).read(),
    )


def work_off(shop: psycopg.Connection, mail: Path) -> None:
    """What the daemon would do."""
    shop.execute("UPDATE outboxd.outbox_events SET published_at = now()")
    shop.execute(
        "INSERT INTO shop.effects (event_id, handler) SELECT id, CASE event_type"
        " WHEN 'order.created' THEN 'analytics.count_order' ELSE 'payment.mark_paid' END"
        " FROM outboxd.outbox_events"
    )
    for (order_id,) in shop.execute("SELECT id FROM shop.orders").fetchall():
        deliver(mail, order_id)


def deliver(mail: Path, order_id: UUID, message_id: str | None = None) -> None:
    message = EmailMessage()
    message["Message-ID"] = message_id or f"<{order_id}@shop.example>"
    message["X-Order-ID"] = str(order_id)
    Maildir(mail).add(message)


def test_before_anything_has_happened_everything_is_missing(
    shop: psycopg.Connection, tmp_path: Path
) -> None:
    assert counted(shop, tmp_path / "mail") == Count(
        orders=3,
        events_committed=6,
        events_published=0,
        effects_expected=9,
        effects_missing=9,
        effects_duplicated=0,
        emails_repeated=0,
        dead_letters=0,
        outbox_backlog=6,
        messages_left=0,
    )


def test_when_all_is_done_nothing_is_missing_and_nothing_is_left(
    shop: psycopg.Connection, tmp_path: Path
) -> None:
    work_off(shop, tmp_path / "mail")

    result = counted(shop, tmp_path / "mail")

    assert result.complete
    assert result.quiet
    assert (result.effects_missing, result.effects_duplicated, result.emails_repeated) == (0, 0, 0)
    assert result.events_published == 6


def test_an_effect_of_a_wrong_handler_replaces_none(
    shop: psycopg.Connection, tmp_path: Path
) -> None:
    work_off(shop, tmp_path / "mail")
    shop.execute("UPDATE shop.effects SET handler = 'other' WHERE seq = 1")

    assert counted(shop, tmp_path / "mail").effects_missing == 1


def test_an_event_that_vanished_from_the_outbox_is_missed(
    shop: psycopg.Connection, tmp_path: Path
) -> None:
    work_off(shop, tmp_path / "mail")
    shop.execute("DELETE FROM outboxd.outbox_events WHERE seq = 1")

    result = counted(shop, tmp_path / "mail")

    assert result.effects_missing == 1
    assert result.events_unexpected == -1


def test_an_effect_that_happened_three_times_is_two_too_many(
    shop: psycopg.Connection, tmp_path: Path
) -> None:
    work_off(shop, tmp_path / "mail")
    for _ in range(2):
        shop.execute(
            "INSERT INTO shop.effects (event_id, handler)"
            " SELECT event_id, handler FROM shop.effects WHERE seq = 1"
        )

    result = counted(shop, tmp_path / "mail")

    assert result.effects_duplicated == 2
    assert result.effects_missing == 0


def test_an_email_that_was_never_sent_is_missing(shop: psycopg.Connection, tmp_path: Path) -> None:
    work_off(shop, tmp_path / "mail")
    next((tmp_path / "mail" / "new").iterdir()).unlink()

    assert counted(shop, tmp_path / "mail").effects_missing == 1


def test_an_email_that_was_sent_again_is_repeated_and_not_duplicated(
    shop: psycopg.Connection, tmp_path: Path
) -> None:
    work_off(shop, tmp_path / "mail")
    ((order_id,),) = shop.execute("SELECT id FROM shop.orders LIMIT 1").fetchall()
    deliver(tmp_path / "mail", order_id)

    result = counted(shop, tmp_path / "mail")

    assert (result.emails_repeated, result.effects_duplicated) == (1, 0)


def test_a_second_email_under_another_message_id_is_a_duplicate(
    shop: psycopg.Connection, tmp_path: Path
) -> None:
    work_off(shop, tmp_path / "mail")
    ((order_id,),) = shop.execute("SELECT id FROM shop.orders LIMIT 1").fetchall()
    deliver(tmp_path / "mail", order_id, "<another@shop.example>")

    result = counted(shop, tmp_path / "mail")

    assert (result.emails_repeated, result.effects_duplicated) == (0, 1)


def test_an_email_that_is_still_being_written_does_not_count(
    shop: psycopg.Connection, tmp_path: Path
) -> None:
    deliver(tmp_path / "mail", uuid4())
    (tmp_path / "mail" / "tmp" / "half").write_text("Message-ID: <a@b>\n")

    assert MailReader(tmp_path / "mail").read().sent == 1


def test_what_waits_is_worked_on_or_hidden_is_left(
    shop: psycopg.Connection, tmp_path: Path
) -> None:
    work_off(shop, tmp_path / "mail")
    queues = {"a": QueueDepth(1, 2, 4), "b": QueueDepth(8)}

    result = counted(shop, tmp_path / "mail", queues, {"a": QueueDepth(3)})

    assert result.messages_left == 15
    assert result.dead_letters == 3
    assert not result.quiet


def test_a_dead_event_is_backlog(shop: psycopg.Connection, tmp_path: Path) -> None:
    work_off(shop, tmp_path / "mail")
    shop.execute(
        "UPDATE outboxd.outbox_events SET published_at = NULL, dead_at = now() WHERE seq = 1"
    )

    assert counted(shop, tmp_path / "mail").outbox_backlog == 1
