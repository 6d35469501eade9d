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
from outboxd.demo.flows import Elsewhere
from outboxd.demo.metrics import ChildView
from outboxd.demo.observation import Observer
from outboxd.demo.options import DemoOptions
from outboxd.demo.queues import Queues
from outboxd.demo.speeds import Speed
from tests.demo.shop import buy, elsewhere
from tests.demo.test_configuration import ADDRESSES

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
        configuration = Configuration(tmp_path, shop_database, endpoint, ADDRESSES, DemoOptions())
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
    send(settings, "jobs")
    send(settings, "jobs", delay_seconds=60)
    send(settings, "payment-events-dlq")

    empty = dict.fromkeys(settings.queues, QueueDepth())
    assert queues.depths() == {**empty, "jobs": QueueDepth(visible=1, delayed=1)}
    assert queues.dead_letters() == {**empty, "payment-events": QueueDepth(visible=1)}


def test_deleted_queues_are_gone_and_are_not_deleted_again(
    settings: Settings, queues: Queues
) -> None:
    queues.delete()
    queues.delete()

    with pytest.raises(Unavailable, match="counting queue payment-events"):
        Queues(settings).depths()


@pytest.fixture
def shop(shop_database: str) -> Iterator[psycopg.Connection]:
    """One purchase, two seconds old, whose payment was applied a second ago, and the customer told
    half a second later."""
    buy(shop_database, range(1, 2))
    with psycopg.connect(shop_database, autocommit=True) as connection:
        connection.execute(
            "UPDATE outboxd.outbox_events SET occurred_at = occurred_at - interval '2 seconds'"
        )
        connection.execute(
            "INSERT INTO shop.effects (event_id, handler, at)"
            " SELECT id, 'payment.mark_paid', occurred_at + interval '1 second'"
            " FROM outboxd.outbox_events WHERE event_type = 'payment.succeeded'"
        )
        connection.execute(
            "INSERT INTO shop.order_notifications (order_id, notification_type, sent_at)"
            " SELECT aggregate_id::uuid, 'email:payment_success',"
            " occurred_at + interval '1.5 seconds'"
            " FROM outboxd.outbox_events WHERE event_type = 'payment.succeeded'"
        )
        yield connection


class Scene:
    """An observer of what the test makes; `answering` says whether the supervisor does."""

    def __init__(self, dsn: str, queues: Queues) -> None:
        self.answering = True
        self.observer = Observer(dsn, "outboxd", queues, self._elsewhere, self._answer)

    def _answer(self, path: str) -> str | None:
        return ANSWERS[path] if self.answering else None

    def _elsewhere(self) -> Elsewhere:
        return elsewhere()


@pytest.fixture
def scene(shop_database: str, queues: Queues) -> Scene:
    return Scene(shop_database, queues)


@pytest.mark.usefixtures("shop")
def test_a_look_sees_everything(scene: Scene, settings: Settings) -> None:
    send(settings, "jobs")

    seen = scene.observer.look()

    assert seen.outbox.backlog == 3
    assert 2.0 <= seen.outbox.oldest_seconds < 60.0
    assert (seen.count.orders, seen.count.messages_left) == (1, 1)
    assert seen.count.effects_missing == seen.count.effects_expected
    assert seen.speeds == {
        "orders_paid": Speed(p50_seconds=1.0, p99_seconds=1.0, rate=0.2),
        "emails_sent": Speed(p50_seconds=1.5, p99_seconds=1.5, rate=0.2),
    }
    assert seen.children == (RELAY,)
    assert 0 < seen.counting_seconds < 60


@pytest.mark.usefixtures("shop")
def test_children_are_shown_as_last_seen_while_the_supervisor_does_not_answer(scene: Scene) -> None:
    scene.observer.look()

    scene.answering = False

    assert scene.observer.look().children == (RELAY,)


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
    assert (after.at, after.count, after.speeds) == (before.at, before.count, before.speeds)
