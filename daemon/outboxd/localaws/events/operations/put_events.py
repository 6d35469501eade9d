"""PutEvents: entries fail one by one, by position, with HTTP 200."""

import msgspec

from outboxd.localaws.errors import AwsError
from outboxd.localaws.events import requests, responses
from outboxd.localaws.events.call import Call
from outboxd.localaws.events.delivery import deliver
from outboxd.localaws.events.errors import constraint, unsupported, validation
from outboxd.localaws.events.event import Event, event_of
from outboxd.localaws.matching import values

MAX_ENTRIES = 10
# AWS lets a request grow to 1 MB by now; the older limit is the strict one.
MAX_REQUEST_BYTES = 262_144
MAX_DETAIL_TYPE = 128

_TIME_BYTES = 14
_YEAR_10000 = 253_402_300_800.0


def put_events(call: Call, request: requests.PutEvents) -> responses.PutEntries:
    entries = request.entries
    if request.endpoint_id is not None:
        raise unsupported("has no global endpoints: leave EndpointId out.")
    if not 1 <= len(entries) <= MAX_ENTRIES:
        raise constraint(
            f"[{len(entries)} entries]",
            "entries",
            f"Member must have length between 1 and {MAX_ENTRIES}",
        )
    if sum(map(size_of, entries)) > MAX_REQUEST_BYTES:
        raise validation("Total size of the entries in the request is over the limit.")
    results = [_put(call, entry) for entry in entries]
    failed = sum(result.error_code is not None for result in results)
    return responses.PutEntries(failed, results)


def size_of(entry: requests.Entry) -> int:
    """Bytes as "Calculating PutEvents event entry size" in the User Guide has them counted."""
    texts = [entry.source, entry.detail_type, entry.detail, *entry.resources]
    return sum(len(text.encode()) for text in texts) + (0 if entry.time is None else _TIME_BYTES)


def _put(call: Call, entry: requests.Entry) -> responses.PutEntry:
    """An event for a bus that does not exist is accepted and lost, as in AWS."""
    try:
        _check(entry)
        event = _event(entry, call)
    except AwsError as refusal:
        return responses.PutEntry(error_code=refusal.code, error_message=refusal.message)
    bus = call.registry.find(entry.event_bus_name, call.region)
    if bus is not None:
        deliver(call, bus, event)
    return responses.PutEntry(event.id)


def _check(entry: requests.Entry) -> None:
    """Raises AwsError with the code of the entry."""
    required = (
        ("Source", entry.source),
        ("DetailType", entry.detail_type),
        ("Detail", entry.detail),
    )
    for name, text in required:
        if not text:
            raise _invalid(name, f"{name} is a required argument.")
    if len(entry.detail_type) > MAX_DETAIL_TYPE:
        raise _invalid("DetailType", f"DetailType is longer than {MAX_DETAIL_TYPE} characters.")
    if not _is_object(entry.detail):
        raise _malformed()
    if entry.source.startswith("aws."):
        raise AwsError("NotAuthorizedForSourceException", "Not authorized for the source.")


def _event(entry: requests.Entry, call: Call) -> Event:
    """Raises AwsError with the code of the entry."""
    if entry.time is not None and not 0 <= entry.time < _YEAR_10000:
        raise _invalid("Time", "Time is out of range.")
    try:
        return event_of(entry, call.region, call.now)
    except ValueError:
        # As deeply nested as can be read, and no longer so in its envelope.
        raise _malformed() from None


def _is_object(detail: str) -> bool:
    try:
        # Both, as each lets something through that the other does not.
        msgspec.json.decode(detail, type=msgspec.Raw)
        return isinstance(values.decoded(detail), dict)
    except (ValueError, RecursionError):
        return False


def _malformed() -> AwsError:
    return AwsError("MalformedDetail", "Detail is malformed.")


def _invalid(name: str, reason: str) -> AwsError:
    return AwsError("InvalidArgument", f"Parameter {name} is not valid. Reason: {reason}")
