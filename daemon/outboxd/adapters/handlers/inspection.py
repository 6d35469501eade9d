"""What a handler's signature asks for; looked at once, when it is loaded."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import msgspec.inspect
import psycopg

from outboxd.core.events import Event
from outboxd.core.settings import InboxMode
from outboxd.ports.handling import Context

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_FIRST = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Unfit(Exception):
    """The handler cannot be used as it is written; the text says what to change."""


class Signature(msgspec.Struct, frozen=True):
    """How to call a handler, and with what."""

    payload: Any
    asynchronous: bool
    wants_tx: bool
    wants_context: bool


def inspect_handler(function: Callable[..., Any], inbox: InboxMode) -> Signature:
    """The signature of a function, a method or an object with `__call__`. Raises Unfit."""
    written = _written(function)
    if inspect.isgeneratorfunction(written) or inspect.isasyncgenfunction(written):
        raise Unfit("is a generator: calling it would run nothing; remove the `yield`")
    asynchronous = inspect.iscoroutinefunction(written)
    parameters = _parameters(function)
    event, *others = parameters.values() or (None,)
    if event is None or event.kind not in _FIRST:
        raise Unfit("takes no event: its first parameter must be the event")
    hints = _hints(written)
    wanted = set(_wanted(others))
    if "tx" in wanted:
        _check_tx(hints.get("tx"), asynchronous, inbox)
    if "context" in wanted:
        _check_context(hints.get("context"))
    return Signature(
        payload=_payload(hints.get(event.name, Event)),
        asynchronous=asynchronous,
        wants_tx="tx" in wanted,
        wants_context="context" in wanted,
    )


def _written(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where `def` or `async def` stands: behind partial objects, decorators that keep what they
    wrap stay as they are, and `__call__` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function):
        return function
    return type(function).__call__


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise Unfit(f"has no signature that Python can read: {error}") from error


def _wanted(parameters: list[inspect.Parameter]) -> Iterator[str]:
    for parameter in parameters:
        if parameter.name in ("tx", "context") and parameter.kind in _NAMED:
            yield parameter.name
        elif parameter.default is inspect.Parameter.empty and parameter.kind not in _REST:
            raise Unfit(
                f"has a parameter `{parameter.name}` that nobody can fill: after the event it may "
                "ask for `tx` and `context`; give other parameters a default"
            )


def _hints(written: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(written)
    except Exception as error:
        raise Unfit(
            f"has annotations that cannot be resolved ({type(error).__name__}: {error}); import "
            "those names at run time, not under TYPE_CHECKING"
        ) from error


def _payload(annotation: Any) -> Any:
    """The payload's type: of `Event[T]` it is T, of a bare `Event` plain dicts and lists."""
    if annotation is Event or annotation is Any:
        return Any
    if get_origin(annotation) is not Event:
        raise Unfit(
            f"has an event annotated {_name(annotation)}: write Event[YourStruct], or Event for a "
            "payload of plain dicts and lists"
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


def _check_tx(annotation: Any, asynchronous: bool, inbox: InboxMode) -> None:
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


def _check_context(annotation: Any) -> None:
    if annotation not in (None, Any, Context):
        raise Unfit(f"has `context` annotated {_name(annotation)}: it is an outboxd.Context")


def _name(annotation: Any) -> str:
    return getattr(annotation, "__qualname__", None) or str(annotation)
