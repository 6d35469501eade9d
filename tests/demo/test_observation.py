"""One look at tables, queues, mailbox and metrics together."""

import os
from collections.abc import Iterator
from email.message import EmailMessage
from mailbox import Maildir
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

ANSWERS = {
    "/metrics": 'outboxd_child_state{child="relay",state="ready"} 1\n',
    "/healthz?verbose": "alive\nrelay\tready\tpid=4711\trestarts=0\theartbeat_age=0.1s\n",
}
RELAY = ChildView(name="relay", state="ready", restarts=0, rss_bytes=0, pid=4711)


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


@pytest.fixture
def shop(shop_database: str) -> Iterator[psycopg.Connection]:
    """One purchase, two seconds old, whose order was counted a second ago."""
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
        yield connection


class Scene:
    """An observer of what the test makes; `answering` says whether the supervisor does."""

    def __init__(self, dsn: str, queues: Queues, mail: Path) -> None:
        self.answering = True
        self.observer = Observer(dsn, "outboxd", queues, MailReader(mail), self._answer)

    def _answer(self, path: str) -> str | None:
        return ANSWERS[path] if self.answering else None


@pytest.fixture
def scene(shop_database: str, queues: Queues, tmp_path: Path) -> Scene:
    return Scene(shop_database, queues, tmp_path / "mail")


@pytest.mark.usefixtures("shop")
def test_a_look_sees_everything(scene: Scene, settings: Settings) -> None:
    send(settings, "order-events")

    seen = scene.observer.look()

    assert seen.outbox.backlog == 2
    assert 2.0 <= seen.outbox.oldest_seconds < 60.0
    assert (seen.count.orders, seen.count.effects_missing, seen.count.messages_left) == (1, 2, 1)
    (flow,) = seen.flows
    assert (flow.handler, flow.p50_seconds, flow.p99_seconds) == ("analytics.count_order", 1.0, 1.0)
    assert seen.children == (RELAY,)
    assert 0 < seen.counting_seconds < 60


@pytest.mark.usefixtures("shop")
def test_children_are_shown_as_last_seen_while_the_supervisor_does_not_answer(scene: Scene) -> None:
    scene.observer.look()

    scene.answering = False

    assert scene.observer.look().children == (RELAY,)


def test_a_sent_email_is_an_effect_of_the_payment_at_the_time_of_its_file(
    scene: Scene, shop: psycopg.Connection, tmp_path: Path
) -> None:
    query = "SELECT aggregate_id, occurred_at FROM outboxd.outbox_events"
    ((order_id, paid_at),) = shop.execute(
        f"{query} WHERE event_type = 'payment.succeeded'".encode()
    ).fetchall()
    message = EmailMessage()
    message["Message-ID"], message["X-Order-ID"] = "<1@shop.example>", order_id
    mailbox = Maildir(tmp_path / "mail")
    key = mailbox.add(message)
    file = tmp_path / "mail" / "new" / key
    os.utime(file, (0, paid_at.timestamp() + 0.5))

    flow = scene.observer.look().flows[-1]

    assert flow.handler == "notification.confirmation_email"
    assert flow.p50_seconds == pytest.approx(0.5, abs=0.001)
    assert flow.rate == pytest.approx(1 / 5)


@pytest.mark.usefixtures("shop")
def test_a_cheap_look_counts_queues_and_keeps_what_was_counted_in_the_database(
    scene: Scene, settings: Settings
) -> None:
    before = scene.observer.look()
    send(settings, "payment-events")
    send(settings, "payment-events-dlq")

    after = scene.observer.look_again(before)

    assert after.queues["payment-events"] == QueueDepth(visible=1)
    assert after.dead_letters["payment-events"] == QueueDepth(visible=1)
    assert (after.at, after.count, after.flows) == (before.at, before.count, before.flows)
