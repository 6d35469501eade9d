"""What the partners do: check a request, accept it once for each key, and say so again."""

import hashlib
from typing import Annotated, Any, assert_never
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from outboxd.demo.partners.book import Accepted, Book, Service

Words = Annotated[str, Meta(min_length=1, max_length=4096)]


class PickupRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /courier/pickups"""

    order_id: UUID


class MessageRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /whatsapp/messages, POST /push/messages"""

    to: UUID
    template: Words
    order_id: UUID
    text: Words


class Answer(Struct, frozen=True):
    """A status and what to say with it."""

    status: int
    content: dict[str, object]
    retry_after: str | None = None


def answer(book: Book, service: Service, key: str, body: bytes) -> Answer:
    """Accept a request, or say what is wrong with it. An idempotency key is used as the draft of
    the HTTP header says: 400 without one, 422 for another request under the same."""
    counts = book.counts[service]
    if not key:
        counts.refused += 1
        return problem(400, "the header Idempotency-Key is missing")
    try:
        content = _content(service, body)
    except msgspec.MsgspecError as error:
        counts.refused += 1
        return problem(422, str(error))
    known = book.find(service, key)
    if known is None:
        told = _told(service, key)
        book.accept(Accepted(service, key, content, told))
        return Answer(201, told)
    if known.content != content:
        counts.refused += 1
        return problem(422, "this Idempotency-Key belongs to another request")
    known.repeated += 1
    counts.repeated += 1
    return Answer(200, known.answer)


def problem(status: int, words: str, retry_after: str | None = None) -> Answer:
    """A refusal that a person can read."""
    return Answer(status, {"detail": words}, retry_after)


def _content(service: Service, body: bytes) -> dict[str, Any]:
    kind = PickupRequest if service is Service.COURIER else MessageRequest
    content: dict[str, Any] = msgspec.to_builtins(msgspec.json.decode(body, type=kind))
    return content


def _told(service: Service, key: str) -> dict[str, object]:
    """The partner's own number for it; the same in every run, so that runs can be compared."""
    number = hashlib.sha256(f"{service}:{key}".encode()).hexdigest()[:12].upper()
    match service:
        case Service.COURIER:
            return {"tracking_number": f"SG{number}"}
        case Service.WHATSAPP | Service.PUSH:
            return {"message_id": number}
        case _:
            assert_never(service)
