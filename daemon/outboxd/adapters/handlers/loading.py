"""Finds the handlers that a configuration names."""

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import msgspec

from outboxd.adapters.handlers.inspection import Signature, Unfit, inspect_handler
from outboxd.core.errors import SettingsError
from outboxd.core.redaction import redactor, secrets_in_environment, secrets_of
from outboxd.core.settings import HandlerSettings, Settings
from outboxd.ports.user_metrics import NOWHERE, UserMetrics


class LoadedHandler:
    """A handler ready to be called; one object for all calls of a process."""

    def __init__(
        self,
        settings: HandlerSettings,
        function: Callable[..., Any],
        signature: Signature,
        metrics: UserMetrics = NOWHERE,
    ) -> None:
        self.settings = settings
        self.metrics = metrics
        self.function = function
        self.signature = signature
        self.decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(signature.payload)

    @property
    def name(self) -> str:
        return self.settings.name


def extend_import_path(paths: Sequence[str]) -> None:
    """Look for handlers in these folders first, in this order."""
    for path in reversed(paths):
        if path in sys.path:
            sys.path.remove(path)
        sys.path.insert(0, path)


def load_handlers(
    settings: Settings, queue_name: str, metrics: UserMetrics = NOWHERE
) -> tuple[LoadedHandler, ...]:
    """The handlers of a queue, whose `context.metrics` are `metrics`. Raises SettingsError with one
    line for each that cannot be used."""
    loaded: list[LoadedHandler] = []
    problems: list[str] = []
    for handler in settings.queues[queue_name].handlers:
        try:
            loaded.append(_load(settings, handler, metrics))
        except Unfit as error:
            problems.append(_problem(settings, queue_name, handler, error))
    if problems:
        raise SettingsError(problems)
    return tuple(loaded)


Watch = Callable[[str], AbstractContextManager[object]]
"""Looks on while a handler, "package.module:function", is imported."""


def handler_problems(settings: Settings, watch: Watch = nullcontext) -> list[str]:
    """One line for each handler of the configuration that could not be loaded.

    Handlers are imported, but no class is constructed: that may open connections.
    """
    return list(_problems(settings, watch))


def _problems(settings: Settings, watch: Watch) -> Iterator[str]:
    for queue_name, queue in settings.queues.items():
        for handler in queue.handlers:
            try:
                with watch(handler.handler):
                    _check(settings, handler)
            except Unfit as error:
                yield _problem(settings, queue_name, handler, error)


def _problem(settings: Settings, queue_name: str, handler: HandlerSettings, error: Unfit) -> str:
    """What a module raises may hold secrets. They are taken out here, before the text goes to
    whoever orders a reload, to the service manager, the status page and the log; not out of the
    handler's own name, which may be "shop.tokens:issue"."""
    redact = redactor([*secrets_of(settings), *secrets_in_environment(os.environ)])
    why = " ".join(redact(str(error)).split())  # it may have many lines, too
    return f"[queues.{queue_name}] handler {handler.name}: {handler.handler} {why}"


def _load(settings: Settings, handler: HandlerSettings, metrics: UserMetrics) -> LoadedHandler:
    target = _find(handler.handler)
    signature = _signature(settings, handler, target)
    return LoadedHandler(handler, _construct(target, handler), signature, metrics)


def _check(settings: Settings, handler: HandlerSettings) -> None:
    _signature(settings, handler, _find(handler.handler))


def _signature(settings: Settings, handler: HandlerSettings, target: Any) -> Signature:
    if handler.inbox != "off" and settings.database is None:
        raise Unfit(
            f'has inbox = "{handler.inbox}", which needs a [database]: add one, or set '
            'inbox = "off"'
        )
    if not isinstance(target, type):
        if not callable(target):
            raise Unfit(f"is of type {type(target).__name__}, which cannot be called")
        if handler.options:
            raise Unfit("is a function, and `options` are for the constructor of a class")
        return inspect_handler(target, handler.inbox, handler.batch)
    call = inspect.getattr_static(target, "__call__", None)
    if not inspect.isfunction(call):
        raise Unfit("is a class without a `__call__` method, so its object cannot be called")
    _check_options(target, handler)
    return inspect_handler(_bound(call), handler.inbox, handler.batch)


def _bound(call: Callable[..., Any]) -> Callable[..., Any]:
    """`__call__` as an object would have it, without making one: `self` is filled."""
    return cast("Callable[..., Any]", call.__get__(object()))


def _check_options(target: type, handler: HandlerSettings) -> None:
    try:
        inspect.signature(target).bind(**handler.options)
    except ValueError:  # a class written in C, without a signature
        return
    except TypeError as error:
        raise Unfit(f"cannot be constructed with its `options`: {error}") from error


def _construct(target: Any, handler: HandlerSettings) -> Callable[..., Any]:
    if not isinstance(target, type):
        return cast("Callable[..., Any]", target)
    try:
        return cast("Callable[..., Any]", target(**handler.options))
    except Exception as error:
        raise Unfit(
            f"could not be constructed with its `options`: {type(error).__name__}: {error}"
        ) from error


def _find(path: str) -> Any:
    module_name, _, attributes = path.partition(":")
    found: Any = _import(module_name)
    where = f"module {module_name}"
    for name in attributes.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise Unfit(f"was not found: {where} has no {name!r}") from None
        where = f"{where}, {name}"
    return found


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            looked = ", ".join(path or "." for path in sys.path)
            raise Unfit(
                f"was not found: no module {error.name!r} in import_path or the environment; "
                f"looked in {looked}"
            ) from error
        raise _not_imported(error) from error
    except (Exception, SystemExit) as error:
        raise _not_imported(error) from error


def _not_imported(error: BaseException) -> Unfit:
    # The text of a syntax error would repeat its place, without the directory.
    words = error.msg if isinstance(error, SyntaxError) else str(error)
    told = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return Unfit(f"could not be imported: {told}{_place_of(error)}")


def _place_of(error: BaseException) -> str:
    """Where the import failed, which is often not in the module that the handler is in; empty if no
    line of a file was run."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f" ({error.filename}:{error.lineno})"
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith("<") and file not in (__file__, importlib.__file__):
            place = f" ({file}:{line})"
    return place
