"""Publish and PublishBatch."""

from outboxd.localaws.errors import AwsError
from outboxd.localaws.ids import new_id
from outboxd.localaws.sns import requests, responses
from outboxd.localaws.sns.call import Call
from outboxd.localaws.sns.delivery import fan_out
from outboxd.localaws.sns.errors import batch_too_long, invalid_parameter, unsupported
from outboxd.localaws.sns.notification import Notice
from outboxd.localaws.sns.topic import Accepted, Topic
from outboxd.localaws.sns.validation import (
    check_attributes,
    check_batch,
    check_identifiable,
    check_message,
    check_structure,
    size_of,
)
from outboxd.localaws.sqs.digests import content_deduplication_id


def publish(call: Call, request: requests.Publish) -> responses.Published:
    topic = call.topic(_destination(request), "TopicArn or TargetArn")
    check_identifiable(topic, request)
    check_message(topic, request)
    check_structure(request)
    check_attributes(request.message_attributes)
    if size_of(request) > topic.maximum_message_bytes:
        raise invalid_parameter("Message too long")
    accepted = _accept(call, topic, request)
    return responses.Published(accepted.message_id, accepted.sequence or None)


def publish_batch(call: Call, request: requests.PublishBatch) -> responses.BatchResult:
    """Entries fail one by one, except for what makes AWS refuse the batch as a whole."""
    topic = call.topic(request.topic_arn)
    entries = request.entries
    check_batch(entries)
    for entry in entries:
        check_attributes(entry.message_attributes)
        check_structure(entry)
        check_identifiable(topic, entry)
    size = sum(map(size_of, entries))
    if size > topic.maximum_message_bytes:
        raise batch_too_long(size, topic.maximum_message_bytes)
    successful: list[responses.PublishedEntry] = []
    failed: list[responses.Failed] = []
    for entry in entries:
        try:
            check_message(topic, entry)
        except AwsError as refusal:
            failed.append(
                responses.Failed(entry.id, refusal.sender_fault, refusal.code, refusal.message)
            )
        else:
            accepted = _accept(call, topic, entry)
            successful.append(
                responses.PublishedEntry(
                    id=entry.id,
                    message_id=accepted.message_id,
                    sequence_number=accepted.sequence or None,
                )
            )
    return responses.BatchResult(successful, failed)


def _destination(request: requests.Publish) -> str:
    if request.phone_number:
        raise unsupported("publishes to topics only, not to phones.")
    if request.topic_arn and request.target_arn:
        raise invalid_parameter(
            "TopicArn or TargetArn Reason: only one of them can be the destination"
        )
    return request.topic_arn or request.target_arn


def _accept(call: Call, topic: Topic, sent: requests.Outgoing) -> Accepted:
    if not topic.fifo:
        accepted = Accepted(new_id(), "")
        fan_out(call, _notice(call, topic, sent, accepted, None))
        return accepted
    group = sent.message_group_id or ""
    deduplication_id = sent.message_deduplication_id or content_deduplication_id(sent.message)
    earlier = topic.accepted_before(group, deduplication_id, call.now)
    if earlier is not None:
        return earlier
    accepted = Accepted(new_id(), call.registry.next_sequence())
    topic.remember(group, deduplication_id, accepted, call.now)
    fan_out(call, _notice(call, topic, sent, accepted, deduplication_id))
    return accepted


def _notice(
    call: Call,
    topic: Topic,
    sent: requests.Outgoing,
    accepted: Accepted,
    deduplication_id: str | None,
) -> Notice:
    return Notice(
        message_id=accepted.message_id,
        topic=topic,
        body=sent.message,
        by_protocol=sent.message_structure == "json",
        subject=sent.subject,
        attributes=sent.message_attributes,
        group=sent.message_group_id,
        deduplication_id=deduplication_id,
        sequence=accepted.sequence or None,
        published_at=call.now,
    )
