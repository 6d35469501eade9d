"""What a handler's signature asks for; looked at once, when it is loaded."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

import msgspec

from outboxd.adapters.handlers.annotations import (
    Unfit,
    check_context,
    check_tx,
    payload_of_many,
    payload_of_one,
)
from outboxd.core.settings import InboxMode

__all__ = ["Signature", "Unfit", "inspect_handler"]

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_FIRST = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Signature(msgspec.Struct, frozen=True):
    """How to call a handler, and with what."""

    payload: Any
    asynchronous: bool
    wants_tx: bool
    wants_context: bool


def inspect_handler(function: Callable[..., Any], inbox: InboxMode, batch: int = 1) -> Signature:
    """The signature of a function, a method or an object with `__call__`. Raises Unfit."""
    written = _written(function)
    if inspect.isgeneratorfunction(written) or inspect.isasyncgenfunction(written):
        raise Unfit("is a generator: calling it would run nothing; remove the `yield`")
    asynchronous = inspect.iscoroutinefunction(written)
    event, *others = _parameters(function).values() or (None,)
    if event is None or event.kind not in _FIRST:
        raise Unfit("takes no event: its first parameter must be the event")
    hints = _hints(written)
    payload_of = payload_of_many if batch > 1 else payload_of_one
    payload = payload_of(hints.get(event.name, Any))
    wanted = set(_wanted(others))
    if "tx" in wanted:
        check_tx(hints.get("tx"), asynchronous, inbox)
    if "context" in wanted:
        check_context(hints.get("context"), batch > 1)
    elif inbox == "own":
        raise Unfit(
            'has inbox = "own" and no parameter `context`, so it could not claim its events: add '
            "it, and call context.claim(connection) in the transaction of its effect"
        )
    return Signature(
        payload=payload,
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
