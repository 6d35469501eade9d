"""Events and jobs as rows of the outbox, checked: what is stored here can be published."""

from collections.abc import Mapping
from uuid import UUID

import msgspec

from outboxd.core.events import JOB_AGGREGATE, NewEvent, NewJob
from outboxd.producer.names import (
    check_aggregate,
    check_event_type,
    check_headers,
    check_id,
    check_key,
)
from outboxd.producer.payloads import json_of
from outboxd.trace_context import traced_headers


class Row(msgspec.Struct, frozen=True):
    """What a producer writes; every other column is the relay's."""

    id: UUID
    event_type: str
    aggregate_type: str
    aggregate_id: str
    payload: bytes
    headers: Mapping[str, str]

    def values(self) -> tuple[UUID, str, str, str, str, str]:
        """In the order of the columns of `statements.COLUMNS`."""
        return (
            self.id,
            self.event_type,
            self.aggregate_type,
            self.aggregate_id,
            self.payload.decode(),
            json_of("headers", self.headers).decode(),
        )


def row_of(new: NewEvent | NewJob, traceparent: str | None) -> Row:
    """Raises PublishRefused, saying what to mend, for what could never be published."""
    aggregate_type, aggregate_id = _aggregate(new)
    check_event_type(new.type)
    check_id(new.id)
    check_headers(new.headers)
    return Row(
        new.id,
        new.type,
        aggregate_type,
        aggregate_id,
        json_of("payload", new.payload),
        traced_headers(new.headers, traceparent),
    )


def _aggregate(new: NewEvent | NewJob) -> tuple[str, str]:
    if isinstance(new, NewEvent):
        check_aggregate(new.aggregate_type, new.aggregate_id)
        return new.aggregate_type, new.aggregate_id
    if new.key is None:
        # Of its own, so that it waits for no other job and the load is spread over all relays.
        return JOB_AGGREGATE, str(new.id)
    check_key(new.key)
    return JOB_AGGREGATE, new.key
