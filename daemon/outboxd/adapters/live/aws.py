"""What AWS says of everything that the configuration names there. Nothing is sent or received."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

import boto3
from botocore.exceptions import ClientError

from outboxd.adapters.aws.config import client_arguments
from outboxd.adapters.aws.explaining import Explaining
from outboxd.adapters.aws.outages import code_of, kind_of_code
from outboxd.adapters.eventbridge.provisioning import BusProvisioner
from outboxd.adapters.live.asking import Asking
from outboxd.adapters.sns.provisioning import TopicProvisioner
from outboxd.adapters.sqs.client import sqs_client
from outboxd.adapters.sqs.provisioning import QueueProvisioner
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.live.facts import (
    Absent,
    Attributes,
    AwsFacts,
    Identity,
    Refusal,
    Unanswered,
)
from outboxd.core.provisioning import wanted_queues
from outboxd.core.provisioning_fan_out import FanOut, WantedTopic, wanted_fan_out
from outboxd.core.provisioning_steps import ExistingRule
from outboxd.core.settings import AwsSettings, Settings

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

T = TypeVar("T")

NO_HANDLE = "outboxd-check"
"""A receipt handle of no message."""


def aws_facts(settings: Settings, seconds: float) -> AwsFacts | None:
    """What there is; None if the configuration has no use for AWS. No question takes longer than
    `seconds`, and none is asked of a service that was away for the one before."""
    queues, fan_out = wanted_queues(settings), wanted_fan_out(settings)
    if not (queues or fan_out.topics or fan_out.buses or fan_out.rules):
        return None
    identity, ahead = _identity(settings.aws, Asking(seconds))
    found = _queues(settings, [queue.name for queue in queues], Asking(seconds))
    names = [settings.sqs_queue_name(name) for name in settings.consumed]
    there = [name for name in names if isinstance(found.get(name), Mapping)]
    client = Asking(seconds)("setting up SQS", lambda: sqs_client(settings.aws, connections=1))
    refusals, unprobed = _refusals(settings.aws, client, there, Asking(seconds))
    topics, subscriptions = _topics(settings.aws, fan_out, found, Asking(seconds))
    buses, rules = _buses(settings.aws, fan_out, Asking(seconds))
    return AwsFacts(
        identity=identity,
        endpoint=None if isinstance(client, Unanswered) else client.meta.endpoint_url,
        ahead_seconds=ahead,
        queues=found,
        refusals=refusals,
        unprobed=unprobed,
        topics=topics,
        subscriptions=subscriptions,
        buses=buses,
        rules=rules,
    )


def _identity(aws: AwsSettings, ask: Asking) -> tuple[Identity | Unanswered, float | None]:
    """Everybody may ask this; and its answer has the time."""
    explained = Explaining("account", aws.endpoint_url)

    def look() -> tuple[Identity, float | None]:
        with explained("asking who we are"):
            client = boto3.session.Session().client("sts", **client_arguments(aws, connections=1))
            answer = client.get_caller_identity()
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        ahead = None if date is None else _ahead(parsedate_to_datetime(date))
        return Identity(answer["Account"], answer["Arn"]), ahead

    found = ask("asking who we are", look)
    return (found, None) if isinstance(found, Unanswered) else found


def _ahead(theirs: datetime) -> float:
    return theirs.timestamp() - time.time()


def _queues(
    settings: Settings, names: Sequence[str], ask: Asking
) -> dict[str, Attributes | Absent | Unanswered]:
    provisioner = ask("setting up SQS", lambda: QueueProvisioner(settings.aws))
    if isinstance(provisioner, Unanswered):
        return {name: _same(f"queue {name}", provisioner) for name in names}
    return {name: ask(f"queue {name}", _one(provisioner.existing, name, name)) for name in names}


def _refusals(
    aws: AwsSettings, client: "SQSClient | Unanswered", names: Sequence[str], ask: Asking
) -> tuple[tuple[Refusal, ...], tuple[Unanswered, ...]]:
    """Tried with a receipt handle of no message: who may not, is told so; who may, that there is no
    such handle. It is the only way to ask SQS."""
    if isinstance(client, Unanswered):
        return (), (client,)
    answers = [
        (Refusal(name, action), ask(f"sqs:{action} on queue {name}", probe))
        for name in names
        for action, probe in _probes(client, name, aws)
    ]
    return (
        tuple(refusal for refusal, refused in answers if refused is True),
        tuple(refused for _, refused in answers if isinstance(refused, Unanswered)),
    )


def _probes(
    client: "SQSClient", name: str, aws: AwsSettings
) -> Iterator[tuple[str, Callable[[], bool]]]:
    explained = Explaining("queue", aws.endpoint_url)

    def refused(doing: str, call: Callable[[str], object]) -> bool:
        with explained(doing):
            url = client.get_queue_url(QueueName=name)["QueueUrl"]
            try:
                call(url)
            except ClientError as error:
                match kind_of_code(code_of(error)):
                    case OutageKind.DENIED:
                        return True
                    case None:
                        return False
                    case _:
                        raise
        return False

    def hide(url: str) -> object:
        return client.change_message_visibility(
            QueueUrl=url, ReceiptHandle=NO_HANDLE, VisibilityTimeout=0
        )

    def delete(url: str) -> object:
        return client.delete_message(QueueUrl=url, ReceiptHandle=NO_HANDLE)

    yield "ChangeMessageVisibility", lambda: refused(f"trying to hide nothing of {name}", hide)
    yield "DeleteMessage", lambda: refused(f"trying to delete nothing of {name}", delete)


def _topics(
    aws: AwsSettings,
    wanted: FanOut,
    queues: Mapping[str, Attributes | Absent | Unanswered],
    ask: Asking,
) -> tuple[
    dict[str, Attributes | Absent | Unanswered],
    dict[tuple[str, str], Attributes | Absent | Unanswered],
]:
    """A subscription is looked for where there are a topic and a queue."""
    if not wanted.topics:
        return {}, {}
    arns = {name: there["QueueArn"] for name, there in queues.items() if isinstance(there, Mapping)}
    provisioner = ask("setting up SNS", lambda: TopicProvisioner(aws, arns.__getitem__))
    if isinstance(provisioner, Unanswered):
        return {
            topic.name: _same(f"topic {topic.name}", provisioner) for topic in wanted.topics
        }, {}
    topics = {
        topic.name: ask(f"topic {topic.name}", _topic(provisioner, topic))
        for topic in wanted.topics
    }
    subscriptions: dict[tuple[str, str], Attributes | Absent | Unanswered] = {
        (each.topic, each.queue): ask(
            f"subscription {each.name}",
            _one(provisioner.subscriptions, each, (each.topic, each.queue)),
        )
        for each in wanted.subscriptions
        if isinstance(topics.get(each.topic), Mapping) and each.queue in arns
    }
    return topics, subscriptions


def _topic(provisioner: TopicProvisioner, topic: WantedTopic) -> Callable[[], Attributes | Absent]:
    def look() -> Attributes | Absent:
        try:
            return provisioner.existing([topic]).get(topic.name, Absent())
        except Unavailable as error:
            if error.kind is OutageKind.MISSING:  # of an `arn`, which nobody has looked for
                return Absent()
            raise

    return look


def _buses(
    aws: AwsSettings, wanted: FanOut, ask: Asking
) -> tuple[dict[str, bool | Unanswered], dict[tuple[str, str], ExistingRule | Absent | Unanswered]]:
    """Rules are looked for on buses that there are, and on the default one."""
    if not (wanted.buses or wanted.rules):
        return {}, {}
    provisioner = ask("setting up EventBridge", lambda: BusProvisioner(aws, lambda name: name))
    if isinstance(provisioner, Unanswered):
        return {bus.name: _same(f"event bus {bus.name}", provisioner) for bus in wanted.buses}, {}
    buses: dict[str, bool | Unanswered] = {}
    for bus in wanted.buses:
        found = ask(f"event bus {bus.name}", _one_bus(provisioner, bus.name, wanted))
        buses[bus.name] = found
    rules = {
        (rule.bus, rule.rule): ask(
            f"rule {rule.name}", _one(provisioner.rules, rule, (rule.bus, rule.rule))
        )
        for rule in wanted.rules
        if buses.get(rule.bus, True) is not False
    }
    return buses, rules


def _one_bus(provisioner: BusProvisioner, name: str, wanted: FanOut) -> Callable[[], bool]:
    (bus,) = (each for each in wanted.buses if each.name == name)
    return lambda: name in provisioner.existing([bus])


W = TypeVar("W")
K = TypeVar("K")


def _one(
    existing: Callable[[Sequence[W]], Mapping[K, T]], wanted: W, key: K
) -> Callable[[], T | Absent]:
    """A question about one thing, of those that provisioning asks about many."""
    return lambda: existing([wanted]).get(key, Absent())


def _same(what: str, unanswered: Unanswered) -> Unanswered:
    return Unanswered(what, unanswered.why, unanswered.kind)
