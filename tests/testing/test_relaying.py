"""What a test of a producer sees of the relay: which events go where, and in which form."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from outboxd import NewEvent, publish
from outboxd.core.errors import SettingsError
from outboxd.testing import relay_pending, relay_pending_async

CONFIGURATION = """
[database]
url = "{database}"
[queues.orders]
[destinations.eventbridge.shop]
source = "shop.orders"
[relay]
[[relay.routes]]
events = "order.*"
to = ["sqs:orders", "eventbridge:shop", "memory:test"]
[[relay.routes]]
events = "mail.*"
to = ["sns:mails"]
envelope = "cloudevents"
"""


@pytest.fixture
def config(tmp_path: Path, database: str) -> Path:
    path = tmp_path / "outboxd.toml"
    path.write_text(CONFIGURATION.format(database=database))
    return path


def store(database: str, *events: NewEvent) -> None:
    with psycopg.connect(database) as connection, connection.transaction():
        for event in events:
            publish(connection, event)


def an_order(number: int, event_type: str = "order.placed") -> NewEvent:
    return NewEvent(event_type, "order", str(number), {"number": number})


def pending(database: str) -> list[Any]:
    with psycopg.connect(database) as connection:
        return connection.execute(
            "SELECT event_type FROM outboxd.outbox_events WHERE published_at IS NULL"
        ).fetchall()


def test_every_event_is_in_the_list_of_each_of_its_destinations(
    config: Path, database: str
) -> None:
    store(database, *map(an_order, range(3)), an_order(9, "mail.sent"))

    delivered = relay_pending(config)

    assert list(delivered) == ["sqs:orders", "eventbridge:shop", "memory:test", "sns:mails"]
    for name in ("sqs:orders", "eventbridge:shop", "memory:test"):
        assert sorted(each.aggregate_id for each in delivered[name]) == ["0", "1", "2"]
    (mail,) = delivered["sns:mails"]
    assert json.loads(mail.body)["specversion"] == "1.0"
    assert mail.attributes["event_type"] == "mail.sent"
    assert pending(database) == []


def test_what_was_published_is_not_published_again(config: Path, database: str) -> None:
    store(database, an_order(1))
    relay_pending(config)
    store(database, an_order(2), an_order(2))

    delivered = relay_pending(config)

    assert [each.aggregate_id for each in delivered["sqs:orders"]] == ["2", "2"]


def test_an_event_without_a_route_is_left(config: Path, database: str) -> None:
    store(database, an_order(1, "lead.won"))

    assert not any(relay_pending(config).values())
    assert pending(database) == [("lead.won",)]


async def test_within_an_event_loop(config: Path, database: str) -> None:
    store(database, an_order(1))

    delivered = await relay_pending_async(config)

    assert len(delivered["sqs:orders"]) == 1


def test_an_outbox_that_somebody_else_works_on_is_told(config: Path, database: str) -> None:
    store(database, an_order(1))
    with psycopg.connect(database) as connection:
        connection.execute(
            "UPDATE outboxd.outbox_buckets"
            " SET owner = gen_random_uuid(), lease_until = now() + interval '1 hour'"
        )

    with pytest.raises(TimeoutError, match="does a daemon work on the same database"):
        relay_pending(config, timeout_seconds=0.5)


def test_a_configuration_without_a_relay_is_refused(tmp_path: Path, database: str) -> None:
    path = tmp_path / "outboxd.toml"
    path.write_text(CONFIGURATION.format(database=database).partition("[relay]")[0])

    with pytest.raises(SettingsError):
        relay_pending(path)
