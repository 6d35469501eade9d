"""The way in for messages that other services of this server deliver to queues."""

import msgspec

from outboxd.localaws.sqs import requests
from outboxd.localaws.sqs.arns import parsed_arn
from outboxd.localaws.sqs.call import Call
from outboxd.localaws.sqs.errors import queue_does_not_exist
from outboxd.localaws.sqs.message import AttributeValue
from outboxd.localaws.sqs.moves import MoveTasks
from outboxd.localaws.sqs.operations.send import TRACE_HEADER, send_message
from outboxd.localaws.sqs.registry import Registry


class Parcel(msgspec.Struct, frozen=True):
    """One message for a queue."""

    body: str
    attributes: dict[str, AttributeValue] = {}
    group: str | None = None
    deduplication_id: str | None = None
    trace_header: str | None = None


class Inbox:
    """Sends as SendMessage does, with all its rules.

    It is no call of a client: no fault takes hold of it, nobody counts it, and the policy of the
    queue is not asked.
    """

    def __init__(self, registry: Registry, moves: MoveTasks) -> None:
        self._registry = registry
        self._moves = moves

    def put(self, arn: str, parcel: Parcel, now: float) -> None:
        """Raises AwsError if there is no such queue, or it does not take the message."""
        place = parsed_arn(arn)
        if place is None:
            raise queue_does_not_exist()
        region, name = place
        system: dict[str, AttributeValue] = {}
        if parcel.trace_header is not None:
            system[TRACE_HEADER] = AttributeValue("String", parcel.trace_header)
        send_message(
            Call(self._registry, self._moves, region, "", now),
            requests.SendMessage(
                queue_url=name,
                message_body=parcel.body,
                message_attributes=parcel.attributes,
                message_system_attributes=system,
                message_group_id=parcel.group,
                message_deduplication_id=parcel.deduplication_id,
            ),
        )
