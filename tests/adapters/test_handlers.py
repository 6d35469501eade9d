"""Finding and inspecting handlers: what is wrong is said in one line, before anything runs."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outboxd.adapters.handlers import extend_import_path, handler_problems, load_handlers
from outboxd.core.errors import SettingsError
from outboxd.core.settings import DatabaseSettings, HandlerSettings, QueueSettings, Settings

MODULE = """
    from __future__ import annotations

    import functools
    from typing import Any

    import msgspec
    import psycopg
    from psycopg import AsyncConnection, Connection

    from collections.abc import Sequence

    from outboxd import BatchContext, Context, Event

    constructed = []
    number = 7

    class Paid(msgspec.Struct):
        total: int

    class Undecodable:
        pass

    def bare(event): ...
    def plain(event: Event) -> None: ...
    async def typed(event: Event[Paid]) -> None: ...
    def with_all(event: Event[Paid], tx: Connection[Any], context: Context) -> None: ...
    async def with_all_async(
        event: Event[Paid], *, context: Context, tx: AsyncConnection
    ) -> None: ...
    def with_defaults(event: Event[Any], retries: int = 3, *rest: int, **more: int) -> None: ...

    def logged(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)
        return wrapper

    @logged
    def decorated(event: Event[Paid], tx: psycopg.Connection) -> None: ...

    with_partial = functools.partial(with_defaults, retries=5)

    class Mailer:
        def __init__(self, *, sender: str, port: int = 25) -> None:
            constructed.append((sender, port))
        def __call__(self, event: Event[Paid], context: Context) -> None: ...
        def method(self, event: Event) -> None: ...

    class AsyncMailer:
        async def __call__(self, event: Event[Paid], tx: AsyncConnection) -> None: ...

    class NotCallable:
        pass

    class Tells:
        def __init__(self, dsn: str) -> None:
            raise OSError(f"cannot reach {dsn}")
        def __call__(self, event: Event) -> None: ...

    class Explodes:
        def __init__(self) -> None:
            raise OSError("no such host")
        def __call__(self, event: Event) -> None: ...

    def batch_bare(events): ...
    def batch_list(events: list) -> None: ...
    def batch_of_dicts(events: list[Event]) -> None: ...
    async def batch_typed(
        events: list[Event[Paid]], tx: AsyncConnection, context: BatchContext
    ) -> None: ...
    def batch_sequence(events: Sequence[Event[Paid]]) -> None: ...

    class BatchMailer:
        def __call__(self, events: list[Event[Paid]]) -> None: ...

    def batch_of_payloads(events: list[Paid]) -> None: ...
    def batch_with_context(events: list[Event[Paid]], context: Context) -> None: ...
    def single_with_batch_context(event: Event[Paid], context: BatchContext) -> None: ...

    def own(event: Event[Paid], context: Context) -> None: ...
    def own_with_tx(event: Event[Paid], tx: Connection, context: Context) -> None: ...

    def no_event() -> None: ...
    def keyword_event(*, event: Event) -> None: ...
    def unknown_parameter(event: Event, connection: Connection) -> None: ...
    def wrong_event(event: Paid) -> None: ...
    def wrong_tx(event: Event, tx: AsyncConnection) -> None: ...
    async def wrong_tx_async(event: Event, tx: Connection) -> None: ...
    def wrong_context(event: Event, context: int) -> None: ...
    def unresolved(event: Event[Nowhere]) -> None: ...
    def undecodable(event: Event[Undecodable]) -> None: ...
    def generator(event: Event):
        yield 1
    async def async_generator(event: Event):
        yield 1
"""


@pytest.fixture(autouse=True)
def shop(tmp_path: Path) -> Iterator[None]:
    """A module `shop_handlers`, found through the import path."""
    (tmp_path / "shop_handlers.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "needs_stripe.py").write_text("import stripe_of_nobody\n")
    (tmp_path / "tells.py").write_text(
        "import os\nraise RuntimeError(os.environ['DATABASE_URL'], os.environ['SHOP_API_TOKEN'])\n"
    )
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "broken.py").write_text("def (\n")
    path, modules = list(sys.path), set(sys.modules)
    extend_import_path([str(tmp_path)])
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def settings(handler: str, database: bool = True, **changes: Any) -> Settings:
    values = {"event": "*", "handler": handler, "name": "h", **changes}
    return Settings(
        database=DatabaseSettings(url="postgresql://") if database else None,
        queues={"orders": QueueSettings(handlers=(HandlerSettings(**values),))},
    )


@pytest.mark.parametrize(
    ("name", "asynchronous", "tx", "context"),
    [
        ("bare", False, False, False),
        ("plain", False, False, False),
        ("typed", True, False, False),
        ("with_all", False, True, True),
        ("with_all_async", True, True, True),
        ("with_defaults", False, False, False),
        ("decorated", False, True, False),
        ("with_partial", False, False, False),
        ("AsyncMailer", True, True, False),
    ],
)
def test_a_handler_is_given_what_it_asks_for(
    name: str, asynchronous: bool, tx: bool, context: bool
) -> None:
    configured = settings(f"shop_handlers:{name}")
    (handler,) = load_handlers(configured, "orders")
    signature = handler.signature
    assert (signature.asynchronous, signature.wants_tx, signature.wants_context) == (
        asynchronous,
        tx,
        context,
    )
    assert handler_problems(configured) == []


def test_a_payload_is_decoded_into_the_annotated_type() -> None:
    (handler,) = load_handlers(settings("shop_handlers:typed"), "orders")
    assert type(handler.decoder.decode(b'{"total": 5}')).__name__ == "Paid"
    (bare,) = load_handlers(settings("shop_handlers:plain"), "orders")
    assert bare.decoder.decode(b'{"total": 5}') == {"total": 5}


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("batch_bare", "dict"),
        ("batch_list", "dict"),
        ("batch_of_dicts", "dict"),
        ("batch_typed", "Paid"),
        ("batch_sequence", "Paid"),
        ("BatchMailer", "Paid"),
    ],
)
def test_a_handler_of_batches_says_so_by_a_list(name: str, payload: str) -> None:
    configured = settings(f"shop_handlers:{name}", batch=50)
    assert handler_problems(configured) == []
    (handler,) = load_handlers(configured, "orders")
    assert type(handler.decoder.decode(b'{"total": 5}')).__name__ == payload


def test_a_handler_with_a_transaction_of_its_own_takes_a_context() -> None:
    assert handler_problems(settings("shop_handlers:own", inbox="own")) == []


def test_a_class_is_constructed_once_with_its_options_and_never_by_a_check() -> None:
    configured = settings("shop_handlers:Mailer", inbox="after", options={"sender": "a@b.example"})
    assert handler_problems(configured) == []
    constructed = sys.modules["shop_handlers"].constructed
    assert constructed == []
    (handler,) = load_handlers(configured, "orders")
    assert constructed == [("a@b.example", 25)]
    assert callable(handler.function)


@pytest.mark.parametrize(
    ("handler", "changes", "problem"),
    [
        ("no_such_package.module:f", {}, "no module 'no_such_package' in import_path"),
        ("shop_handlers.deeper:f", {}, "no module 'shop_handlers.deeper'"),
        ("needs_stripe:f", {}, "could not be imported: ModuleNotFoundError: No module named 'str"),
        ("leaves:f", {}, "could not be imported: SystemExit: 3"),
        ("broken:f", {}, "could not be imported: SyntaxError: invalid syntax ("),
        ("shop_handlers:missing", {}, "module shop_handlers has no 'missing'"),
        ("shop_handlers:Mailer.missing", {}, "module shop_handlers, Mailer has no 'missing'"),
        ("shop_handlers:number", {}, "is of type int, which cannot be called"),
        ("shop_handlers:NotCallable", {}, "is a class without a `__call__` method"),
        ("shop_handlers:Mailer", {"inbox": "off"}, "cannot be constructed with its `options`: mis"),
        ("shop_handlers:Mailer", {"inbox": "off", "options": {"sendr": "x"}}, "cannot be constru"),
        ("shop_handlers:plain", {"options": {"a": 1}}, "`options` are for the constructor"),
        ("shop_handlers:no_event", {}, "takes no event"),
        ("shop_handlers:keyword_event", {}, "takes no event"),
        ("shop_handlers:unknown_parameter", {}, "a parameter `connection` that nobody can fill"),
        ("shop_handlers:Mailer.method", {}, "a parameter `event` that nobody can fill"),
        ("shop_handlers:wrong_event", {}, "an event annotated Paid: write Event[YourStruct]"),
        ("shop_handlers:wrong_tx", {}, "a plain `def` is given a psycopg.Connection"),
        ("shop_handlers:wrong_tx_async", {}, "an `async def` is given a psycopg.AsyncConnection"),
        ("shop_handlers:with_all", {"inbox": "after"}, 'asks for `tx`, but inbox = "after"'),
        ("shop_handlers:with_all", {"inbox": "off"}, 'asks for `tx`, but inbox = "off"'),
        ("shop_handlers:wrong_context", {}, "it is an outboxd.Context"),
        ("shop_handlers:unresolved", {}, "annotations that cannot be resolved (NameError"),
        ("shop_handlers:undecodable", {}, "a payload type that cannot be decoded"),
        ("shop_handlers:generator", {}, "is a generator"),
        ("shop_handlers:typed", {"batch": 2}, "annotated Event[Paid], but with `batch` it is ca"),
        ("shop_handlers:plain", {"batch": 2}, "annotated Event, but with `batch` it is called"),
        ("shop_handlers:wrong_event", {"batch": 2}, "write list[Event[YourStruct]]"),
        ("shop_handlers:batch_of_payloads", {"batch": 2}, "annotated Paid: write list[Event["),
        ("shop_handlers:batch_typed", {}, "annotated list[Event[Paid]], but is called with one"),
        ("shop_handlers:batch_list", {}, "annotated list, but is called with one at a time"),
        ("shop_handlers:batch_sequence", {}, "set `batch` above 1 for it, or write Event["),
        ("shop_handlers:batch_with_context", {"batch": 2}, "an outboxd.BatchContext with `batch`"),
        ("shop_handlers:single_with_batch_context", {}, "it is an outboxd.Context"),
        ("shop_handlers:own_with_tx", {"inbox": "own"}, 'with inbox = "own" it brings its own tra'),
        ("shop_handlers:typed", {"inbox": "own"}, 'has inbox = "own" and no parameter `context`'),
        ("shop_handlers:async_generator", {}, "is a generator"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    handler: str, changes: dict[str, Any], problem: str
) -> None:
    configured = settings(handler, **changes)
    (line,) = handler_problems(configured)
    assert line.startswith(f"[queues.orders] handler h: {handler} ")
    assert problem in line
    assert "\n" not in line
    with pytest.raises(SettingsError) as error:
        load_handlers(configured, "orders")
    assert error.value.problems == (line,)


def test_a_constructor_that_fails_is_said_when_the_handler_is_loaded() -> None:
    with pytest.raises(SettingsError, match="OSError: no such host"):
        load_handlers(settings("shop_handlers:Explodes"), "orders")


def test_what_an_import_tells_of_secrets_is_not_told_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on to whoever orders a reload, to the service manager and to a CI's log."""
    url = "host=db user=shop password=hunter2hunter2"
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("SHOP_API_TOKEN", "tok-0123456789")
    configured = msgspec.structs.replace(
        settings("tells:handle"), database=DatabaseSettings(url=url)
    )

    (line,) = handler_problems(configured)
    with pytest.raises(SettingsError) as error:
        load_handlers(configured, "orders")

    assert line.startswith("[queues.orders] handler h: tells:handle could not be imported: ")
    assert "RuntimeError: ('***', '***')" in line
    assert "tells.py:2" in line, "the place of the mistake is no secret"
    assert error.value.problems == (line,)


def test_what_a_constructor_tells_of_its_options_is_not_told_on() -> None:
    configured = settings("shop_handlers:Tells", inbox="off", options={"dsn": "tok-0123456789"})

    with pytest.raises(SettingsError, match=r"OSError: cannot reach \*\*\*$"):
        load_handlers(configured, "orders")


def test_a_handler_that_is_called_like_a_secret_is_named() -> None:
    (line,) = handler_problems(settings("tokens:handle"))

    assert line.startswith("[queues.orders] handler h: tokens:handle was not found")


def test_an_inbox_needs_a_database() -> None:
    (line,) = handler_problems(settings("shop_handlers:plain", database=False))
    assert 'has inbox = "transaction", which needs a [database]' in line
    assert handler_problems(settings("shop_handlers:plain", database=False, inbox="off")) == []


def test_the_places_that_were_searched_are_named(tmp_path: Path) -> None:
    (line,) = handler_problems(settings("nowhere:f"))
    assert str(tmp_path) in line


def test_an_import_path_comes_first_and_only_once(tmp_path: Path) -> None:
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    extend_import_path(folders)
    extend_import_path(folders)
    assert sys.path[:2] == folders
    assert sys.path.count(folders[0]) == 1
