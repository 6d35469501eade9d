"""docs/handlers.md: its handlers load as it configures them, and do what it says."""

import asyncio
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.db import connections

from outboxd import Context, Done, NewEvent, Retry
from outboxd.adapters.configuration import load_settings
from outboxd.adapters.handlers import extend_import_path, handler_problems, load_handlers
from outboxd.core.outcomes import DeadLetter
from outboxd.ports.handling import BatchContext
from outboxd.resources import project_directory
from outboxd.testing import run, run_async
from tests.adapters.bringers import sqlalchemy_url, use_django

PAGE = (project_directory() / "docs" / "handlers.md").read_text(encoding="utf-8")

TABLES = """
    CREATE TABLE accounts (customer text PRIMARY KEY, points int);
    INSERT INTO accounts VALUES ('ada', 0);
    CREATE TABLE views (event_id uuid, order_id int);
    CREATE TABLE labels (order_id int, label text);
    CREATE TABLE invoices (id serial PRIMARY KEY, order_id int, total int)
"""

DJANGO_MODEL = """
    from django.db import models

    class Account(models.Model):
        customer = models.TextField(primary_key=True)
        points = models.IntegerField()

        class Meta:
            app_label = "shop"
            db_table = "accounts"
"""

QUEUE = """
[database]
url = "postgresql://"
[queues.orders]
concurrency = 100
"""


@pytest.fixture
def page(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The page's files, importable; the DSN of a database with its tables."""
    files = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(files) == PAGE.count("```python")
    for name, text in files:
        (tmp_path / name).write_text(text)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "models.py").write_text(textwrap.dedent(DJANGO_MODEL))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(TABLES)
    url = sqlalchemy_url(database).render_as_string(hide_password=False)
    monkeypatch.setenv("SHOP_URL", url)
    use_django(database)
    path, modules = list(sys.path), set(sys.modules)
    extend_import_path([str(tmp_path)])
    yield database
    connections.close_all()
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")) or name == "shop":
            del sys.modules[name]


def rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def paid(**payload: Any) -> NewEvent:
    return NewEvent("order.paid", "order", "17", payload)


def test_its_handlers_load_as_they_are_configured(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.M | re.S)
    (tmp_path / "outboxd.toml").write_text(QUEUE + "\n".join(blocks))

    settings = load_settings(tmp_path / "outboxd.toml", {})

    assert handler_problems(settings) == []
    assert len(load_handlers(settings, "orders")) == len(blocks) == 6
    import_module("invoices").engine.dispose()


def test_points_are_given_in_the_transaction(page: str) -> None:
    add_points = import_module("points").add_points
    with psycopg.connect(page) as tx:
        assert run(add_points, paid(customer="ada", total=1250), tx=tx) == Done()
        nobody = run(add_points, paid(customer="", total=1250), tx=tx)
    assert isinstance(nobody, DeadLetter)
    assert rows(page, "SELECT points FROM accounts") == [(12,)]


def test_a_class_is_given_its_options(page: str) -> None:
    options = {"sender": "shop@example.com"}
    send_mail, event = import_module("mails").SendMail, paid(customer="grace")
    assert isinstance(run(send_mail, event, options=options, inbox="after"), Retry)
    assert run(send_mail, event, options=options, attempt=2, inbox="after") == Done()


@pytest.mark.parametrize(
    ("status", "outcome"), [(201, Done), (503, Retry), (429, Retry), (422, DeadLetter)]
)
def test_a_label_is_ordered_under_a_key_and_stored_with_the_mark(
    page: str, status: int, outcome: type
) -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(status, json={"number": "L1"})

    label = import_module("labels").OrderLabel("https://labels.example", page)
    label.client = httpx.Client(base_url="https://x", transport=httpx.MockTransport(answer))

    ended = run(label, paid(order_id=17), inbox="own")

    assert isinstance(ended, outcome)
    assert requests[0].headers["Idempotency-Key"] != ""
    assert rows(page, "SELECT * FROM labels") == ([(17, "L1")] if outcome is Done else [])


def test_views_are_counted_by_the_batch(page: str) -> None:
    count_views = import_module("views").count_views
    with psycopg.connect(page) as tx:
        assert run(count_views, [paid(order_id=1), paid(order_id=2)], tx=tx) == Done()
    assert rows(page, "SELECT order_id FROM views") == [(1,), (2,)]


def test_a_parcel_is_counted(page: str) -> None:
    note_parcel = import_module("parcels").note_parcel
    with psycopg.connect(page) as tx:
        assert run(note_parcel, paid(carrier="ups", grams=300), tx=tx) == Done()


def test_an_invoice_is_written_once_with_sqlalchemy(page: str) -> None:
    invoices, event = import_module("invoices"), paid(order_id=17, total=1250)
    for outcome in (Done(), Done(duplicate=True)):
        assert run(invoices.write_invoice, event, inbox="own") == outcome
    invoices.engine.dispose()
    assert rows(page, "SELECT order_id, total FROM invoices") == [(17, 1250)]
    assert rows(page, "SELECT event_type FROM outboxd.outbox_events") == [("invoice.written",)]


async def test_an_invoice_is_written_once_asynchronously(page: str) -> None:
    invoices, event = import_module("invoices_async"), paid(order_id=17, total=1250)
    for outcome in (Done(), Done(duplicate=True)):
        assert await run_async(invoices.write_invoice, event, inbox="own") == outcome
    await invoices.engine.dispose()
    await asyncio.sleep(0)
    assert rows(page, "SELECT order_id, total FROM invoices") == [(17, 1250)]


def test_points_are_added_once_with_django(page: str) -> None:
    add_points, event = import_module("loyalty").add_points, paid(customer="ada", total=1250)
    for outcome in (Done(), Done(duplicate=True)):
        assert run(add_points, event, inbox="own") == outcome
    assert rows(page, "SELECT points FROM accounts") == [(12,)]


@pytest.mark.parametrize("kind", [Context, BatchContext])
def test_what_a_context_has_is_on_the_page(kind: type) -> None:
    for name in dir(kind):
        if not name.startswith("_"):
            assert re.search(rf"`{name}\b", PAGE), name
