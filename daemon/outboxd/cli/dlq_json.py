"""Dead letters for programs: what is known of one, and what it takes to send it again."""

import base64
from collections.abc import Mapping
from typing import Any

from outboxd.adapters.sqs.letter_reports import DeadLetterQueue
from outboxd.adapters.sqs.received import letter_entry
from outboxd.cli.dlq_inbox import Standing
from outboxd.core.messages import Attribute
from outboxd.core.redrive import Entry, redriven


def whole(about: DeadLetterQueue, entry: Entry, now: float, *, body: bool) -> dict[str, Any]:
    """All but the body, which is there only if it is asked for."""
    message, facts = entry.message, entry.facts
    told = {
        "message_id": message.message_id,
        "event_id": facts.event_id,
        "event_type": facts.event_type,
        "reason": facts.reason,
        "error": facts.error,
        "handlers": facts.handlers,
        "age_seconds": round(now - message.sent_at),
        "seconds_left": round(seconds_left(about, entry, now)),
        "original": {
            "queue": facts.source_queue,
            "message_id": facts.message_id,
            "receive_count": facts.receive_count,
            "sent_at": facts.sent_at,
            "dead_lettered_at": facts.dead_lettered_at,
            "dropped_attributes": facts.dropped_attributes,
        },
        "receive_count": message.receive_count,
        "sent_at": message.sent_at,
        "group_id": message.group_id,
        "body_bytes": len(message.body.encode("utf-8", "surrogatepass")),
        "attributes": {name: _attribute(a) for name, a in message.attributes.items()},
    }
    return {**told, "body": message.body} if body else told


def brief(entry: Entry, standings: Mapping[str, Standing] | None = None) -> dict[str, Any]:
    """Which letter it is; with `standings` also who had processed its event."""
    facts = entry.facts
    told = {
        "message_id": entry.message.message_id,
        "event_id": facts.event_id,
        "event_type": facts.event_type,
        "reason": facts.reason,
    }
    return told if standings is None else {**told, **processed(entry, standings)}


def processed(entry: Entry, standings: Mapping[str, Standing] | None) -> dict[str, Any]:
    """What the inbox knows; null where it could not be asked."""
    if standings is None:
        return {"processed_by": None, "nothing_left": None}
    standing = standings.get(entry.message.message_id)
    if standing is None:
        return {"processed_by": [], "nothing_left": False}
    return {"processed_by": standing.processed_by, "nothing_left": standing.nothing_left}


def sending(entry: Entry, target: str) -> dict[str, Any]:
    """The input of SendMessage for what a redrive would send to the SQS queue `target`, but for
    the queue's URL; bytes in base64, as the AWS CLI takes them."""
    sent: dict[str, Any] = {**letter_entry(0, redriven(entry.message, target))}
    del sent["Id"]
    sent["MessageAttributes"] = {
        name: {
            key: base64.b64encode(part).decode() if isinstance(part, bytes) else part
            for key, part in value.items()
        }
        for name, value in sent["MessageAttributes"].items()
    }
    return sent


def seconds_left(about: DeadLetterQueue, entry: Entry, now: float) -> float:
    """Until SQS deletes it."""
    return entry.message.sent_at + about.retention_seconds - now


def _attribute(attribute: Attribute) -> dict[str, str]:
    match attribute.value:
        case str(text):
            return {"type": attribute.data_type, "value": text}
        case bytes(data):
            return {"type": attribute.data_type, "base64": base64.b64encode(data).decode()}
