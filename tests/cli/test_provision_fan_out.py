"""Topics, subscriptions, buses and rules come to be as the configuration says, and deliver."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from outboxd.core.exit_codes import ExitCode
from tests.cli.conftest import Cli
from tests.emulators import EMULATORS
from tests.localaws.fanout import Fanout, messages, open_fanout

CONFIGURATION = """
[aws]
endpoint_url = "{endpoint}"
[queues.orders]
wait_seconds = 0
[queues.audit]
wait_seconds = 0
[destinations.sns.order-topic]
{topic}
[[destinations.sns.order-topic.subscriptions]]
queue = "orders"
events = ["order.*"]
{subscription}
[destinations.eventbridge.shop]
source = "shop.orders"
[[destinations.eventbridge.shop.rules]]
name = "audit"
events = {events}
to = ["sqs:audit"]
"""

LINES = [
    "topic order-topic",
    "bus shop",
    "policy of queue orders",
    "policy of queue orders-dlq",
    "policy of queue audit",
    "policy of queue audit-dlq",
    "subscription order-topic -> orders",
    "rule shop/audit",
]

Configure = Callable[..., None]


@pytest.fixture(params=["localaws", "moto"])
def aws_endpoint(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Without roto, which knows neither wildcards in patterns nor dead letters of targets."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with EMULATORS[request.param]() as endpoint:
        yield endpoint


@pytest.fixture
def configure(folder: Path, aws_endpoint: str) -> Configure:
    def write(topic: str = "", subscription: str = "", events: str = '["order.*.done"]') -> None:
        text = CONFIGURATION.format(
            endpoint=aws_endpoint, topic=topic, subscription=subscription, events=events
        )
        (folder / "outboxd.toml").write_text(text)

    return write


@pytest.fixture
def fanout(aws_endpoint: str) -> Iterator[Fanout]:
    with open_fanout(aws_endpoint) as fanout:
        yield fanout


def actions(out: str) -> list[tuple[str, str]]:
    """What is to be done about each thing that is no queue, in the order of the lines."""
    lines = [line.split(maxsplit=1) for line in out.splitlines() if not line.startswith(" ")]
    return [(name, action) for action, name in lines if " " in name and action != "plan:"]


def url_of(fanout: Fanout, queue: str) -> str:
    return str(fanout.sqs.get_queue_url(QueueName=queue)["QueueUrl"])


def topic_of(fanout: Fanout) -> str:
    (topic,) = fanout.sns.list_topics()["Topics"]
    return str(topic["TopicArn"])


def subscription_of(fanout: Fanout) -> Any:
    (found,) = fanout.sns.list_subscriptions_by_topic(TopicArn=topic_of(fanout))["Subscriptions"]
    arn = found["SubscriptionArn"]
    return fanout.sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]


def policy_of(fanout: Fanout, queue: str) -> Any:
    answer = fanout.sqs.get_queue_attributes(
        QueueUrl=url_of(fanout, queue), AttributeNames=["Policy"]
    )
    return json.loads(answer["Attributes"]["Policy"])


def test_all_of_it_is_created_and_delivers(cli: Cli, configure: Configure, fanout: Fanout) -> None:
    configure()

    code, out, err = cli("provision")

    assert (code, err) == (ExitCode.OK, "")
    assert actions(out) == [(line, "create") for line in LINES]
    assert out.endswith("plan: 12 to create, 0 to update, 0 unchanged\n")
    by_type = {
        "event_type": {"DataType": "String", "StringValue": "order.paid"},
    }
    fanout.sns.publish_batch(
        TopicArn=topic_of(fanout),
        PublishBatchRequestEntries=[
            *messages("raw", MessageAttributes=by_type),
            {"Id": "other", "Message": "other"},
        ],
    )
    assert fanout.bodies(url_of(fanout, "orders")) == ["raw"]
    entry = {"Source": "shop.orders", "EventBusName": "shop", "Detail": "{}"}
    fanout.events.put_events(
        Entries=[
            {**entry, "DetailType": "order.1.done"},
            {**entry, "DetailType": "order.1.begun"},
            {**entry, "DetailType": "order.1.done", "Source": "shop.others"},
        ]
    )
    (body,) = fanout.bodies(url_of(fanout, "audit"))
    assert json.loads(body)["detail-type"] == "order.1.done"


def test_a_second_run_finds_nothing_to_do(cli: Cli, configure: Configure) -> None:
    configure()
    cli("provision")

    code, out, _ = cli("provision")

    assert code == ExitCode.OK
    assert actions(out) == [(line, "unchanged") for line in LINES]
    assert out.endswith("plan: 0 to create, 0 to update, 12 unchanged\n")


def test_a_dry_run_changes_nothing(cli: Cli, configure: Configure, fanout: Fanout) -> None:
    configure()

    code, out, _ = cli("provision", "--dry-run", "--json")

    assert code == ExitCode.OK
    plan = json.loads(out)
    assert plan["dry_run"] is True
    assert [each["action"] for each in plan["topics"]] == ["create"]
    assert [each["name"] for each in plan["rules"]] == ["shop/audit"]
    assert "orders-dlq" in [each["name"] for each in plan["policies"]]
    assert [each["name"] for each in plan["subscriptions"]] == ["order-topic -> orders"]
    assert fanout.sns.list_topics().get("Topics", []) == []
    assert [bus["Name"] for bus in fanout.events.list_event_buses()["EventBuses"]] == ["default"]


def test_only_what_differs_is_corrected(cli: Cli, configure: Configure, fanout: Fanout) -> None:
    configure()
    cli("provision")
    configure(subscription="raw = false", events='["*"]')

    code, out, _ = cli("provision")

    assert code == ExitCode.OK
    assert [name for name, action in actions(out) if action == "update"] == [
        "subscription order-topic -> orders",
        "rule shop/audit",
    ]
    assert "           RawMessageDelivery: true -> false\n" in out
    assert subscription_of(fanout)["RawMessageDelivery"] == "false"
    rule = fanout.events.describe_rule(Name="audit", EventBusName="shop")
    assert json.loads(rule["EventPattern"]) == {"source": ["shop.orders"]}
    (target,) = fanout.events.list_targets_by_rule(Rule="audit", EventBusName="shop")["Targets"]
    assert target["DeadLetterConfig"]["Arn"].endswith(":audit-dlq")


def test_a_filter_is_taken_away_again(cli: Cli, configure: Configure, fanout: Fanout) -> None:
    configure()
    cli("provision")
    assert json.loads(subscription_of(fanout)["FilterPolicy"]) == {
        "event_type": [{"prefix": "order."}]
    }

    path = Path("outboxd.toml")
    path.write_text(path.read_text().replace('events = ["order.*"]\n', ""))
    code, out, _ = cli("provision")

    assert code == ExitCode.OK
    assert '           FilterPolicy: {"event_type":[{"prefix":"order."}]} -> {}\n' in out
    assert json.loads(subscription_of(fanout).get("FilterPolicy") or "{}") == {}


def test_a_policy_that_is_there_keeps_what_it_says(
    cli: Cli, configure: Configure, fanout: Fanout
) -> None:
    configure()
    cli("provision")
    url = url_of(fanout, "orders")
    theirs = {
        "Sid": "Theirs",
        "Effect": "Allow",
        "Principal": "*",
        "Action": "sqs:SendMessage",
        "Resource": fanout.arn(url),
    }
    document = {"Version": "2012-10-17", "Statement": [theirs]}
    fanout.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(document)})

    _, out, _ = cli("provision")

    assert "create     policy of queue orders\n" in out
    policy = policy_of(fanout, "orders")
    statements = {each["Sid"]: each for each in policy["Statement"]}
    assert statements["Theirs"] == theirs
    assert statements["OutboxdTopics"]["Condition"] == {
        "ArnEquals": {"aws:SourceArn": [topic_of(fanout)]}
    }


def test_a_rule_keeps_what_others_have_set(cli: Cli, configure: Configure, fanout: Fanout) -> None:
    configure()
    cli("provision")
    fanout.events.disable_rule(Name="audit", EventBusName="shop")
    configure(events='["payment.*"]')

    cli("provision")

    rule = fanout.events.describe_rule(Name="audit", EventBusName="shop")
    assert rule["State"] == "DISABLED"
    assert json.loads(rule["EventPattern"])["detail-type"] == [{"prefix": "payment."}]


def test_a_topic_by_arn_is_subscribed_to_and_never_created(
    cli: Cli, configure: Configure, fanout: Fanout
) -> None:
    arn = fanout.sns.create_topic(Name="theirs")["TopicArn"]
    configure(topic=f'arn = "{arn}"')

    assert cli("provision").code == ExitCode.OK

    assert topic_of(fanout) == arn
    assert subscription_of(fanout)["TopicArn"] == arn

    fanout.sns.delete_topic(TopicArn=arn)
    code, _, err = cli("provision")
    assert code == ExitCode.UNEXPECTED
    assert "reading topic theirs: the topic does not exist" in err
