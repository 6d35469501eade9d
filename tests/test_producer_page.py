"""docs/producing.md: what it shows runs, and what it says of limits is so."""

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import psycopg
import pytest
import sqlalchemy
from django.db import connections
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from outboxd.core.envelopes import open_envelope
from outboxd.core.events import NewJob
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import body_of
from outboxd.core.routes import RouteTable
from outboxd.core.settings import RouteSettings
from outboxd.producer import MANY_BYTES, MANY_EVENTS, MAX_BYTES, MAX_DEPTH, enqueue
from outboxd.resources import project_directory
from tests.adapters.bringers import sqlalchemy_url, use_django
from tests.producer_scene import an_event, payloads, rows, stored

PAGE = (project_directory() / "docs" / "producing.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python\n# (\w+)\.py\n(.*?)^```$", PAGE, re.M | re.S))
SQL = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.M | re.S)
[ROUTE] = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.M | re.S)


class Model(DeclarativeBase):
    pass


class Order(Model):
    __tablename__ = "orders"

    id: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str]
    total: Mapped[int]


@pytest.fixture
def page(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The page's files, importable; the DSN of a database with its orders."""
    assert len(FILES) == PAGE.count("```python")
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    rows(database, "CREATE TABLE orders (id text PRIMARY KEY, status text, total int)")
    rows(database, "INSERT INTO orders SELECT n, 'new', 100 FROM generate_series(42, 44) n")
    monkeypatch.syspath_prepend(tmp_path)
    use_django(database)
    yield database
    connections.close_all()
    for name in FILES:
        sys.modules.pop(name, None)


def of_page(name: str) -> ModuleType:
    return import_module(name)


def statuses(dsn: str) -> list[str]:
    return [status for (status,) in rows(dsn, "SELECT status FROM orders ORDER BY id")]


def test_a_payment_is_published_with_its_receipt(page: str) -> None:
    with psycopg.connect(page, autocommit=True) as connection:
        of_page("checkout").pay(connection, "42", 4200)

    assert [row[1] for row in stored(page)] == ["order.paid", "receipt.send"]


async def test_its_frameworks_publish(page: str) -> None:
    frameworks = of_page("frameworks")
    engine = sqlalchemy.create_engine(sqlalchemy_url(page), poolclass=NullPool)
    with Session(engine) as session:
        frameworks.with_sqlalchemy(session, session.get_one(Order, "42"))
    asynchronous = create_async_engine(sqlalchemy_url(page), poolclass=NullPool)
    async with AsyncSession(asynchronous) as session_async:
        order = await session_async.get_one(Order, "43")
        await frameworks.with_sqlalchemy_async(session_async, order)
    await asynchronous.dispose()

    assert statuses(page) == ["paid", "paid", "new"]
    assert [row[3] for row in stored(page)] == ["42", "43"]


def test_django_publishes(page: str) -> None:
    class Saved:
        id, total, status = "44", 100, "new"

        def save(self) -> None:
            with connections["default"].cursor() as cursor:
                cursor.execute("UPDATE orders SET status = %s WHERE id = '44'", [self.status])

    of_page("frameworks").with_django(Saved())

    assert statuses(page)[2] == "paid"
    assert [row[3] for row in stored(page)] == ["44"]


def test_many_are_published_in_parts(page: str) -> None:
    with psycopg.connect(page) as connection:
        of_page("importing").publish_all(connection, [an_event(number) for number in range(1200)])

    assert payloads(page) == list(range(1200))


def test_its_sql_publishes(page: str) -> None:
    transaction, one_statement, _ = SQL
    with psycopg.connect(page, autocommit=True) as connection:
        connection.execute(transaction.encode())
        connection.execute(one_statement.encode())

    assert [(row[1], row[3]) for row in stored(page)] == [
        ("order.paid", "42"),
        ("order.paid", "43"),
        ("receipt.send", "customer-7"),
        ("order.paid", "44"),
    ]


def test_a_producer_needs_only_what_is_said(page: str) -> None:
    role = "producer_of_the_page"
    grant = SQL[2].replace("shop_producer", role)
    with psycopg.connect(page, autocommit=True) as owner:
        for statement in (
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA outboxd TO {role}",
            "GRANT INSERT (id, event_type, aggregate_type, aggregate_id, payload, headers) "
            f"ON outboxd.outbox_events TO {role}",
            "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA outboxd FROM PUBLIC",
            grant,
        ):
            owner.execute(statement.encode())
        with psycopg.connect(page, user=role) as producer:
            enqueue(producer, NewJob("receipt.send", 1), ordered=True)
            producer.execute("SELECT outboxd.outbox_enqueue('receipt.send', '2', ordered => true)")
        owner.execute(f"DROP OWNED BY {role}".encode())
        owner.execute(f"DROP ROLE {role}".encode())

    assert payloads(page) == [1, 2]


def test_a_job_arrives_as_a_job(page: str) -> None:
    """Its route sees it by its aggregate type, and a handler sees no aggregate at all."""
    [route] = tomllib.loads(ROUTE)["relay"]["routes"]
    table = RouteTable([msgspec.convert(route, RouteSettings)])
    with psycopg.connect(page) as connection:
        job_id = enqueue(connection, NewJob("receipt.send", {"order": "42"}))
    [row] = stored(page)
    found = table.find(row[1], row[2])
    assert found is not None
    assert table.find(row[1], "order") is None

    body = body_of(stored_event(row), found.envelope)
    message = ReceivedMessage(
        message_id="m", receipt_handle="r", receive_count=1, sent_at=0.0, body=body
    )
    incoming = open_envelope(message)

    assert msgspec.json.decode(body) == {
        "id": str(job_id),
        "type": "receipt.send",
        "payload": {"order": "42"},
    }
    assert (incoming.id, incoming.type) == (job_id, "receipt.send")
    assert (incoming.aggregate_type, incoming.aggregate_id) == ("", "")


def stored_event(row: tuple[Any, ...]) -> StoredEvent:
    event_id, event_type, aggregate_type, aggregate_id, payload, _ = row
    return StoredEvent(
        key=1,
        seq=1,
        id=str(event_id),
        event_type=event_type,
        aggregate_type=aggregate_type,
        aggregate_id=aggregate_id,
        payload=msgspec.json.encode(payload).decode(),
        traceparent=None,
        occurred_at="2026-01-01T00:00:00.000000Z",
        born_at=0.0,
        attempts=0,
        due_at=0.0,
        delivered_to=None,
    )


def test_its_limits_are_those_of_the_code() -> None:
    assert f"{MAX_BYTES:,}" in PAGE
    assert f"more than {MAX_DEPTH} arrays" in PAGE
    assert f"at most {MANY_EVENTS:,} events and\n{MANY_BYTES // 2**20} MiB" in PAGE
