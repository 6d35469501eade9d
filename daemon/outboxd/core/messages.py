"""A message as the queue handed it over, before anybody looked into its body."""

from collections.abc import Mapping

import msgspec


class Attribute(msgspec.Struct, frozen=True):
    """One message attribute: `data_type` is String, Number or Binary, with or without a suffix."""

    data_type: str
    value: str | bytes


class ReceivedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What one receive granted. `sent_at` is Unix time in seconds, by the queue's own clock."""

    message_id: str
    receipt_handle: str
    receive_count: int
    sent_at: float
    body: str
    attributes: Mapping[str, Attribute] = {}
    group_id: str | None = None
    trace_header: str | None = None
    moved_from: str | None = None
    """The SQS queue that SQS itself moved it from; told of dead letters only."""
