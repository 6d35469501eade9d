"""Each thing that can be wrong in AWS is found, on servers of several authors."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.core.live.finding import Code
from tests.cli.conftest import Cli
from tests.cli.live_scene import Live
from tests.emulators import EMULATORS


@pytest.fixture(params=["localaws"])
def live(
    request: pytest.FixtureRequest, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Live]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with EMULATORS[request.param]() as endpoint:
        live = Live(cli, folder, "postgresql://nobody@localhost/asked", endpoint)
        assert cli("provision").code == ExitCode.OK
        yield live


def without_a_queue(live: Live) -> None:
    live.client("sqs").delete_queue(QueueUrl=live.queue_url("audit"))


def without_redrive_policy(live: Live) -> None:
    live.set_queue("orders", RedrivePolicy="")


def redrive(live: Live, target: str, receives: int) -> None:
    arn = live.client("sqs").get_queue_attributes(
        QueueUrl=live.queue_url(target), AttributeNames=["QueueArn"]
    )["Attributes"]["QueueArn"]
    policy = {"deadLetterTargetArn": arn, "maxReceiveCount": receives}
    live.set_queue("orders", RedrivePolicy=json.dumps(policy))


def letters_elsewhere(live: Live) -> None:
    redrive(live, "audit-dlq", 100)


def few_receives(live: Live) -> None:
    redrive(live, "orders-dlq", 5)


def letters_kept_for_less_long(live: Live) -> None:
    live.set_queue("orders-dlq", MessageRetentionPeriod="86400")


def kept_for_less_long(live: Live) -> None:
    live.set_queue("orders", MessageRetentionPeriod="3600")


def kept_for_as_long_as_letters(live: Live) -> None:
    live.set_queue("orders", MessageRetentionPeriod="1209600")


def letters_refused(live: Live) -> None:
    live.set_queue("orders-dlq", RedriveAllowPolicy='{"redrivePermission":"denyAll"}')


def delayed(live: Live) -> None:
    live.set_queue("orders", DelaySeconds="60")


def another_visibility(live: Live) -> None:
    live.set_queue("orders", VisibilityTimeout="77")


def small(live: Live) -> None:
    live.set_queue("orders", MaximumMessageSize="1024")


def closed_to_topics(live: Live) -> None:
    live.set_queue("orders", Policy="")


def policy_with_a_strange_condition(live: Live) -> None:
    arn = live.client("sqs").get_queue_attributes(
        QueueUrl=live.queue_url("orders"), AttributeNames=["QueueArn"]
    )["Attributes"]["QueueArn"]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-1"}},
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    live.set_queue("orders", Policy=json.dumps(policy))


def without_topic(live: Live) -> None:
    live.client("sns").delete_topic(TopicArn=live.topic_arn())


def subscription(live: Live) -> str:
    sns = live.client("sns")
    listed = sns.list_subscriptions_by_topic(TopicArn=live.topic_arn())["Subscriptions"]
    return str(listed[0]["SubscriptionArn"])


def unsubscribed(live: Live) -> None:
    live.client("sns").unsubscribe(SubscriptionArn=subscription(live))


def another_filter(live: Live) -> None:
    live.client("sns").set_subscription_attributes(
        SubscriptionArn=subscription(live),
        AttributeName="FilterPolicy",
        AttributeValue='{"event_type":["payment.made"]}',
    )


def without_rule(live: Live) -> None:
    without_target(live)
    live.client("events").delete_rule(Name="audit", EventBusName="shop")


def without_target(live: Live) -> None:
    live.client("events").remove_targets(Rule="audit", EventBusName="shop", Ids=["audit"])


def disabled_rule(live: Live) -> None:
    live.client("events").disable_rule(Name="audit", EventBusName="shop")


def another_pattern(live: Live) -> None:
    live.client("events").put_rule(
        Name="audit", EventBusName="shop", EventPattern='{"source":["elsewhere"]}'
    )


def without_bus(live: Live) -> None:
    without_rule(live)
    live.client("events").delete_event_bus(Name="shop")


USUAL = {Code.PERMISSIONS_UNTESTED, Code.IDENTITY_UNKNOWN}  # localaws has no STS

STAGED: list[tuple[Callable[[Live], None], set[Code]]] = [
    (without_a_queue, {Code.QUEUE_MISSING}),
    (without_redrive_policy, {Code.DEAD_LETTER_NONE}),
    (letters_elsewhere, {Code.DEAD_LETTER_ELSEWHERE}),
    (few_receives, {Code.RECEIVES_FEW}),
    (letters_kept_for_less_long, {Code.DEAD_LETTER_RETENTION, Code.RETENTION_SHORT}),
    (kept_for_less_long, {Code.RETENTION_SHORT}),
    (kept_for_as_long_as_letters, {Code.QUEUE_DRIFT, Code.DEAD_LETTER_HURRY}),
    (letters_refused, {Code.DEAD_LETTER_REFUSED}),
    (delayed, {Code.QUEUE_DELAY}),
    (another_visibility, {Code.QUEUE_DRIFT}),
    (small, {Code.QUEUE_SIZE}),
    (closed_to_topics, {Code.QUEUE_CLOSED}),
    (policy_with_a_strange_condition, {Code.QUEUE_POLICY_UNCLEAR}),
    (without_topic, {Code.TOPIC_MISSING}),
    (unsubscribed, {Code.SUBSCRIPTION_MISSING}),
    (another_filter, {Code.SUBSCRIPTION_DRIFT}),
    (without_rule, {Code.RULE_MISSING}),
    (without_target, {Code.RULE_TARGET}),
    (disabled_rule, {Code.RULE_DISABLED}),
    (another_pattern, {Code.RULE_DRIFT}),
    (without_bus, {Code.BUS_MISSING}),
]


@pytest.mark.parametrize(("stage", "expected"), STAGED, ids=[each.__name__ for each, _ in STAGED])
def test_each_difference_is_found_and_nothing_else(
    live: Live, stage: Callable[[Live], None], expected: set[Code]
) -> None:
    stage(live)

    assert live.in_aws() == USUAL | expected


# Together, for moto is slow; it keeps no RedriveAllowPolicy. roto keeps no dead letters of targets.
TOGETHER = [
    few_receives,
    letters_kept_for_less_long,
    delayed,
    another_visibility,
    closed_to_topics,
    another_filter,
    without_target,
    disabled_rule,
]


@pytest.mark.parametrize("live", ["moto"], indirect=True)
def test_another_authors_aws_says_the_same(live: Live) -> None:
    usual = live.in_aws()
    for stage in TOGETHER:
        stage(live)

    found = live.in_aws()

    assert usual == {Code.PERMISSIONS_UNTESTED}
    assert found - usual == set().union(
        *(expected for stage, expected in STAGED if stage in TOGETHER)
    )


@pytest.mark.parametrize("live", ["moto"], indirect=True)
def test_the_identity_is_told_where_there_is_one(live: Live) -> None:
    told = live.check("--timeout-seconds", "5").out

    assert ", as arn:aws:sts::123456789012:user/moto\n" in told
    assert "aws: account 123456789012 in us-east-1 at http://127.0.0.1:" in told
