"""One look at tables, queues, mailbox and metrics together."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from outboxd.adapters.configuration import load_settings
from outboxd.adapters.sqs.client import sqs_client
from outboxd.core.errors import Unavailable
from outboxd.core.settings import Settings
from outboxd.demo.aws import local_aws
from outboxd.demo.configuration import Configuration
from outboxd.demo.counting import QueueDepth
from outboxd.demo.mail import MailReader
from outboxd.demo.metrics import ChildView
from outboxd.demo.observation import Observer
from outboxd.demo.options import DemoOptions
from outboxd.demo.queues import Queues
from outboxd.demo.shopper import Purchase

METRICS = 'outboxd_child_state{child="relay",state="ready"} 1\n'


@pytest.fixture
def settings(
    shop_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    """The demo's configuration, with a local AWS to go with it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with local_aws(tmp_path / "log") as endpoint:
        configuration = Configuration(tmp_path, shop_database, endpoint, DemoOptions())
        yield load_settings(configuration.path, os.environ)


@pytest.fixture
def queues(settings: Settings) -> Queues:
    queues = Queues(settings)
    queues.create()
    return queues


def send(settings: Settings, queue: str, delay_seconds: int = 0) -> None:
    client = sqs_client(settings.aws, connections=1)
    url = client.get_queue_url(QueueName=queue)["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="{}", DelaySeconds=delay_seconds)


def test_queues_are_counted_by_the_name_in_the_configuration(
    settings: Settings, queues: Queues
) -> None:
    send(settings, "order-events")
    send(settings, "order-events", delay_seconds=60)
    send(settings, "payment-events-dlq")

    assert queues.depths() == {
        "order-events": QueueDepth(visible=1, delayed=1),
        "payment-events": QueueDepth(),
    }
    assert queues.dead_letters() == {
        "order-events": QueueDepth(),
        "payment-events": QueueDepth(visible=1),
    }


def test_deleted_queues_are_gone_and_are_not_deleted_again(
    settings: Settings, queues: Queues
) -> None:
    queues.delete()
    queues.delete()

    with pytest.raises(Unavailable, match="counting queue order-events: the queue does not exist"):
        Queues(settings).depths()


def test_a_look_sees_everything(
    shop_database: str, settings: Settings, queues: Queues, tmp_path: Path
) -> None:
    send(settings, "order-events")
    with psycopg.connect(shop_database, autocommit=True) as connection:
        Purchase(1, 1).make(connection)
        connection.execute(
            "UPDATE outboxd.outbox_events SET occurred_at = occurred_at - interval '2 seconds'"
        )
        connection.execute(
            "INSERT INTO shop.effects (event_id, handler, at)"
            " SELECT id, 'analytics.count_order', occurred_at + interval '1 second'"
            " FROM outboxd.outbox_events WHERE event_type = 'order.created'"
        )
        mail = MailReader(tmp_path / "mail")
        answers = iter([METRICS, None])
        observer = Observer(shop_database, "outboxd", queues, mail, lambda: next(answers))

        seen = observer.look()

        assert seen.outbox.backlog == 2
        assert 2.0 <= seen.outbox.oldest_seconds < 60.0
        assert (seen.count.orders, seen.count.effects_missing, seen.count.messages_left) == (
            1,
            2,
            1,
        )
        (flow,) = seen.flows
        assert (flow.handler, flow.p50_seconds, flow.p99_seconds) == (
            "analytics.count_order",
            1.0,
            1.0,
        )
        relay = ChildView(name="relay", state="ready", restarts=0, rss_bytes=0)
        assert seen.children == (relay,)
        assert observer.look().children == (relay,), "as last seen, while nobody answers"
