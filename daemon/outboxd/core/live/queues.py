"""What SQS says of the configured queues, against what they are for."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from outboxd.core.live.attributes import days, document, number, whole
from outboxd.core.live.facts import Absent, Attributes, AwsFacts
from outboxd.core.live.finding import Code, Finding
from outboxd.core.live.retention import retention_findings
from outboxd.core.provisioning import REDRIVE_POLICY, RETENTION, TypeConflict, WantedQueue, plan
from outboxd.core.provisioning_fan_out import wanted_fan_out
from outboxd.core.settings import QueueSettings, Settings

WHOLE_MESSAGE_BYTES = 1_048_576

_UNABLE = {
    "DeleteMessage": "a daemon with this identity would run handlers and not get rid of their "
    "messages",
    "ChangeMessageVisibility": "a daemon with this identity could neither delay a retry nor hide "
    "the message of a long handler, which would be delivered again meanwhile",
}

_PROVISION = "run `outboxd provision`, which corrects it"


def queue_findings(
    settings: Settings, wanted: tuple[WantedQueue, ...], facts: AwsFacts
) -> Iterator[Finding]:
    """Each queue by itself, then each with its dead-letter queue."""
    letters = {settings.dead_letter_name(name) for name in settings.queues}
    for queue in wanted:
        match facts.queues.get(queue.name):
            case Absent():
                yield _missing(queue, letters)
            case Mapping() as attributes:
                yield from _alone(queue, attributes)
            case _:
                pass
    for name in settings.queues:
        yield from _together(settings, name, facts.queues)
    yield from _deliveries(settings, facts.queues)
    for refusal in facts.refusals:
        yield Finding(
            Code.PERMISSION_REFUSED,
            f"queue {refusal.queue}",
            f"the identity that checks may not call sqs:{refusal.action}",
            _UNABLE.get(refusal.action, "a daemon with this identity could not work"),
            "grant it as docs/iam.md says, or check with the daemon's own role",
        )


def _missing(queue: WantedQueue, letters: set[str]) -> Finding:
    consequence = (
        "what handlers give up could not be dead-lettered, and would be tried until SQS deletes it"
        if queue.name in letters
        else "what is published to it waits in the outbox, and its pool receives nothing"
    )
    return Finding(
        Code.QUEUE_MISSING,
        f"queue {queue.name}",
        "there is no queue of this name in this account and region",
        consequence,
        "run `outboxd provision`; if it is there, compare [aws] region and the account",
    )


def _alone(queue: WantedQueue, attributes: Attributes) -> Iterator[Finding]:
    subject = f"queue {queue.name}"
    try:
        # The redrive policy is judged apart, with what it is for.
        alone = msgspec.structs.replace(queue, dead_letter=None)
        (step,) = plan((alone,), {queue.name: attributes})
    except TypeConflict as conflict:
        yield Finding(
            Code.QUEUE_TYPE,
            subject,
            str(conflict).partition(";")[0],
            "order would be lost, or calls for it refused",
            "a queue cannot change its type: delete it once it is empty, or use another name",
        )
        return
    for change in step.changes:
        if change.attribute == RETENTION and int(change.new) > number(attributes, RETENTION):
            yield Finding(
                Code.RETENTION_SHORT,
                subject,
                f"it keeps messages for {days(number(attributes, RETENTION))} days, configured "
                f"are {days(int(change.new))}",
                "SQS deletes what waits for longer, without a trace",
                _PROVISION,
            )
        else:
            yield Finding(
                Code.QUEUE_DRIFT,
                subject,
                f"its {change.attribute} is {change.old}, configured is {change.new}",
                "outboxd asks for what is configured in each call; other readers get the queue's"
                if change.attribute != RETENTION
                else "messages live longer than the configuration says",
                _PROVISION,
            )
    yield from _surprises(subject, attributes)


def _surprises(subject: str, attributes: Attributes) -> Iterator[Finding]:
    delay = number(attributes, "DelaySeconds")
    if delay > 0:
        yield Finding(
            Code.QUEUE_DELAY,
            subject,
            f"it hides each new message for {delay} s (DelaySeconds)",
            "everything sent to it is late by as much",
            "set DelaySeconds to 0, unless it is meant",
        )
    size = number(attributes, "MaximumMessageSize", WHOLE_MESSAGE_BYTES)
    if size < WHOLE_MESSAGE_BYTES:
        yield Finding(
            Code.QUEUE_SIZE,
            subject,
            f"it takes messages of up to {size} bytes, where SQS allows {WHOLE_MESSAGE_BYTES}",
            "larger events are refused, and dead in the outbox",
            f"set MaximumMessageSize to {WHOLE_MESSAGE_BYTES} if events may be that large",
        )
    if attributes.get("FifoThroughputLimit") == "perQueue":
        yield Finding(
            Code.QUEUE_THROUGHPUT,
            subject,
            "its throughput is limited for the queue as a whole (FifoThroughputLimit = perQueue)",
            "SQS throttles at 300 calls a second of each kind",
            "set DeduplicationScope = messageGroup and FifoThroughputLimit = perMessageGroupId",
        )
    key = attributes.get("KmsMasterKeyId", "")
    if key and not _aws_managed(key):
        yield Finding(
            Code.QUEUE_KEY_UNTESTED,
            subject,
            f"it is encrypted with the key {key}, whose policy was not looked at",
            "whoever may not use the key can neither send nor receive",
            "compare the key's policy with docs/iam.md, section about encrypted queues",
        )


def _together(settings: Settings, name: str, queues: Mapping[str, Any]) -> Iterator[Finding]:
    queue = settings.queues[name]
    called, letters = settings.sqs_queue_name(name), settings.dead_letter_name(name)
    attributes, letter_attributes = queues.get(called), queues.get(letters)
    if isinstance(attributes, Mapping):
        yield from _redrive(queue, called, letters, attributes)
        yield from _visibility(queue, called)
    if not (isinstance(attributes, Mapping) and isinstance(letter_attributes, Mapping)):
        return
    yield from _admittance(attributes, called, letters, letter_attributes)
    yield from retention_findings(settings, name, attributes, letter_attributes)


def _redrive(
    queue: QueueSettings, called: str, letters: str, attributes: Attributes
) -> Iterator[Finding]:
    policy = document(attributes.get(REDRIVE_POLICY))
    if not policy:
        yield Finding(
            Code.DEAD_LETTER_NONE,
            f"queue {called}",
            "it has no redrive policy",
            "a message that outboxd never gets to judge, since its pool keeps dying, comes back "
            "until SQS deletes it",
            _PROVISION,
        )
        return
    target = str(policy.get("deadLetterTargetArn", "")).rpartition(":")[2]
    if target != letters:
        yield Finding(
            Code.DEAD_LETTER_ELSEWHERE,
            f"queue {called}",
            f"its redrive policy names {target}, configured is {letters}",
            "what SQS moves by itself ends where `outboxd dlq` does not look",
            _PROVISION,
        )
    receives = whole(str(policy.get("maxReceiveCount")))
    attempts = max([queue.max_attempts, *(each.max_attempts or 0 for each in queue.handlers)])
    if receives < 4 * attempts:
        yield Finding(
            Code.RECEIVES_FEW,
            f"queue {called}",
            f"SQS moves a message away after {receives} receives, fewer than 4 x max_attempts "
            f"({4 * attempts})",
            "SQS counts releases and crashes too: deploys would dead-letter healthy messages, "
            "without a reason",
            _PROVISION,
        )


def _visibility(queue: QueueSettings, called: str) -> Iterator[Finding]:
    longest = max((each.timeout_seconds for each in queue.handlers), default=0.0)
    if longest > queue.visibility_seconds:
        yield Finding(
            Code.VISIBILITY_SHORT,
            f"queue {called}",
            f"a handler may take {longest:g} s, and messages are hidden for "
            f"{queue.visibility_seconds} s",
            "the extender hides them for longer meanwhile; where it cannot, for "
            f"{queue.visibility_seconds} s, a message is delivered again beside its handler",
            "nothing, or raise visibility_seconds if a second run is dear",
        )


def _admittance(
    attributes: Attributes, called: str, letters: str, letter_attributes: Attributes
) -> Iterator[Finding]:
    allowed = document(letter_attributes.get("RedriveAllowPolicy"))
    permission = allowed.get("redrivePermission", "allowAll")
    named = allowed.get("sourceQueueArns")
    sources = named if isinstance(named, list) else []
    refused = permission == "denyAll" or (
        permission == "byQueue" and attributes.get("QueueArn") not in sources
    )
    if refused:
        yield Finding(
            Code.DEAD_LETTER_REFUSED,
            f"queue {letters}",
            f"its redrive allow policy ({permission}) does not let {called} use it",
            "SQS refuses it as a dead-letter queue: the net below outboxd is missing",
            f"add {called} to sourceQueueArns, or set redrivePermission to allowAll",
        )


def _deliveries(settings: Settings, queues: Mapping[str, Any]) -> Iterator[Finding]:
    """Services deliver to an encrypted queue only if the key's policy lets them, and nobody can
    change that of AWS's own key (SQS developer guide, "key management")."""
    for policy in wanted_fan_out(settings).policies:
        attributes = queues.get(policy.queue)
        if isinstance(attributes, Mapping) and _aws_managed(attributes.get("KmsMasterKeyId", "")):
            yield Finding(
                Code.QUEUE_KEY,
                f"queue {policy.queue}",
                "it is encrypted with alias/aws/sqs, which SNS and EventBridge may not use",
                "nothing that they should deliver arrives",
                "encrypt it with SSE-SQS, or with a key of your own as docs/iam.md says",
            )


def _aws_managed(key: str) -> bool:
    return key.endswith("alias/aws/sqs")
