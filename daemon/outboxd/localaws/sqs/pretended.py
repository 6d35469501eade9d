"""The answers to calls that were swallowed: in every detail as if they had been carried out."""

from typing import Any, TypeVar

import msgspec

from outboxd.localaws.errors import malformed
from outboxd.localaws.faults import Target
from outboxd.localaws.ids import new_id
from outboxd.localaws.sqs import requests, responses
from outboxd.localaws.sqs.digests import attributes_md5, body_md5

Request = TypeVar("Request", bound=requests.Outgoing)

_SEQUENCE = "18850000000000000000"


def result(target: Target, content: dict[str, Any]) -> msgspec.Struct | None:
    """The result of a call that is no batch. Raises AwsError for one that cannot be read."""
    if target.operation == "SendMessage":
        return _sent(_read(content, requests.SendMessage), target)
    return None


def batch_entry(target: Target, entry: dict[str, Any]) -> dict[str, Any]:
    """A batch entry's place among the successful ones. Raises AwsError as `result` does."""
    done: dict[str, Any] = {"Id": entry["Id"]}
    if target.operation == "SendMessageBatch":
        done.update(msgspec.to_builtins(_sent(_read(entry, requests.SendEntry), target)))
    return done


def _read(content: dict[str, Any], request: type[Request]) -> Request:
    try:
        return msgspec.convert(content, request)
    except msgspec.ValidationError as error:
        raise malformed(str(error)) from None


def _sent(outgoing: requests.Outgoing, target: Target) -> responses.Sent:
    fifo = target.queue is not None and target.queue.endswith(".fifo")
    return responses.Sent(
        message_id=new_id(),
        body_md5=body_md5(outgoing.message_body),
        attributes_md5=attributes_md5(outgoing.message_attributes),
        system_attributes_md5=attributes_md5(outgoing.message_system_attributes),
        sequence_number=_SEQUENCE if fifo else None,
    )
