"""What the annotations of a handler's parameters must say."""

from collections.abc import Sequence
from typing import Any, get_args, get_origin

import msgspec
import msgspec.inspect
import psycopg

from outboxd.core.events import Event
from outboxd.core.settings import InboxMode
from outboxd.ports.handling import BatchContext, Context

_LISTS = (list, Sequence)


class Unfit(Exception):
    """The handler cannot be used as it is written; the text says what to change."""


def payload_of_one(annotation: Any) -> Any:
    """The payload's type: of `Event[T]` it is T, of a bare `Event` plain dicts and lists."""
    if (get_origin(annotation) or annotation) in _LISTS:
        raise Unfit(
            f"has events annotated {_name(annotation)}, but is called with one at a time: set "
            "`batch` above 1 for it, or write Event[YourStruct]"
        )
    return _payload(annotation, "Event[YourStruct], or Event")


def payload_of_many(annotation: Any) -> Any:
    """The same of `list[Event[T]]`, of `Sequence[Event[T]]` and of a bare `list`."""
    if annotation is Any or annotation in _LISTS:
        return Any
    if get_origin(annotation) in _LISTS:
        (event,) = get_args(annotation)
        return _payload(event, "list[Event[YourStruct]], or list")
    raise Unfit(
        f"has an event annotated {_name(annotation)}, but with `batch` it is called with a list of "
        "them: write list[Event[YourStruct]], or list for payloads of plain dicts and lists; or "
        "leave `batch` out"
    )


def _payload(annotation: Any, remedy: str) -> Any:
    if annotation is Event or annotation is Any:
        return Any
    if get_origin(annotation) is not Event:
        raise Unfit(
            f"has an event annotated {_name(annotation)}: write {remedy} for a payload of plain "
            "dicts and lists"
        )
    (payload,) = get_args(annotation)
    _check_decodable(payload)
    return payload


def _check_decodable(payload: Any) -> None:
    try:
        kind = msgspec.inspect.type_info(payload)
    except Exception as error:  # TypeError says which type, but a Struct may also lack names
        raise Unfit(f"has a payload type that cannot be decoded: {error}") from error
    if isinstance(kind, msgspec.inspect.CustomType):
        # Not refused by msgspec: it would ask a hook how, and without one fail at every message.
        raise Unfit(
            f"has a payload type that cannot be decoded, {_name(payload)}: use a msgspec.Struct, "
            "a dataclass or a TypedDict"
        )


def check_tx(annotation: Any, asynchronous: bool, inbox: InboxMode) -> None:
    """Raises Unfit unless the handler can be given such a `tx`."""
    if inbox == "own":
        raise Unfit(
            'asks for `tx`, but with inbox = "own" it brings its own transaction: remove the '
            "parameter, and call context.claim(connection) within that transaction"
        )
    if inbox != "transaction":
        raise Unfit(
            f'asks for `tx`, but inbox = "{inbox}" gives it no transaction: set '
            'inbox = "transaction", or remove the parameter'
        )
    if annotation is None or annotation is Any:
        return
    right = psycopg.AsyncConnection if asynchronous else psycopg.Connection
    if (get_origin(annotation) or annotation) is not right:
        kind = "an `async def`" if asynchronous else "a plain `def`"
        raise Unfit(
            f"has `tx` annotated {_name(annotation)}: {kind} is given a psycopg.{right.__name__}"
        )


def check_context(annotation: Any, batch: bool) -> None:
    """Raises Unfit unless a `context` of the right kind is expected."""
    right: type = BatchContext if batch else Context
    if annotation not in (None, Any, right):
        why = " with `batch`" if batch else ""
        raise Unfit(
            f"has `context` annotated {_name(annotation)}: it is an outboxd.{right.__name__}{why}"
        )


def _name(annotation: Any) -> str:
    if get_args(annotation):
        # Not `__qualname__`, which of list[Event[Paid]] says only "list".
        arguments = ", ".join(_name(each) for each in get_args(annotation))
        return f"{_name(get_origin(annotation))}[{arguments}]"
    return getattr(annotation, "__qualname__", None) or str(annotation)
