"""How the daemon's own loops connect to PostgreSQL."""

import socket
import threading
from collections.abc import Iterator

import anyio
import psycopg
import pytest

from outboxd.adapters.postgres.sessions import SERVER_LIMITS, Sessions, conninfo
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.settings import DatabaseSettings
from tests.relay.scene import FakeDestination, Scene


async def test_limits_and_the_schema_hold_for_each_statement_and_stay_with_none(
    database: str,
) -> None:
    """A setting that stayed would be somebody else's behind a transaction pooler."""
    sessions = Sessions(DatabaseSettings(url=database, schema="outboxd"), "outboxd relay")
    session = sessions.session()
    names = ["search_path", "statement_timeout", "lock_timeout", "application_name"]

    shown = await session.rows(
        b"SELECT name, current_setting(name) FROM unnest(%(names)s::text[]) AS name",
        {"names": names},
    )
    assert session._connection is not None
    left = await (await session._connection.execute("SHOW statement_timeout")).fetchall()
    await sessions.close()

    assert dict(shown) == {
        "search_path": "outboxd",
        "statement_timeout": "5s",
        "lock_timeout": "2s",
        "application_name": "outboxd relay",
    }
    assert left == [("0",)]


async def test_a_statement_above_its_limit_is_ended_by_the_server(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SERVER_LIMITS, "statement_timeout", "50ms")
    sessions = Sessions(DatabaseSettings(url=database), "x")

    with pytest.raises(Unavailable) as caught:
        await sessions.session().rows(b"SELECT pg_sleep(4)", {})

    assert caught.value.kind is OutageKind.TIMEOUT
    assert "statement timeout" in str(caught.value)
    await sessions.close()


def test_options_of_the_url_stay(database: str) -> None:
    url = psycopg.conninfo.make_conninfo(database, options="-c work_mem=5MB")

    with psycopg.connect(conninfo(DatabaseSettings(url=url), "x")) as connection:
        assert connection.execute("SHOW work_mem").fetchall() == [("5MB",)]


class HangingUp:
    """A pooler in front of a dead server: takes connections and ends them."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self.dsn = f"host=127.0.0.1 port={self._socket.getsockname()[1]} user=x dbname=x"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def hanging_up() -> Iterator[HangingUp]:
    server = HangingUp()
    yield server
    server.close()


async def test_all_loops_together_connect_less_than_once_a_second(hanging_up: HangingUp) -> None:
    seconds = 5

    async with Scene(hanging_up.dsn).relay(FakeDestination()) as relay:
        await anyio.sleep(seconds)
        assert 1 <= hanging_up.connections <= seconds
        assert relay.facts.count("database_failed") > 0
        await relay.drain(seconds=1.5)


async def test_a_password_is_not_in_the_error(hanging_up: HangingUp) -> None:
    url = hanging_up.dsn + " password=secret-of-mine"
    session = Sessions(DatabaseSettings(url=url), "x").session()

    with pytest.raises(Unavailable) as caught:
        await session.rows(b"SELECT 1", {})

    assert caught.value.kind is OutageKind.UNREACHABLE
    assert "secret-of-mine" not in str(caught.value)


async def test_a_cancelled_statement_does_not_leave_a_broken_connection(database: str) -> None:
    sessions = Sessions(DatabaseSettings(url=database), "x")
    session = sessions.session()

    with anyio.move_on_after(0.1):
        await session.rows(b"SELECT pg_sleep(4)", {})

    assert await session.rows(b"SELECT 1", {}) == [(1,)]
    await sessions.close()


async def test_a_frozen_server_is_given_up(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outboxd.adapters.postgres.sessions.ANSWER_SECONDS", 0.2)
    sessions = Sessions(DatabaseSettings(url=database), "x")

    with pytest.raises(Unavailable) as caught:
        await sessions.session().rows(b"SELECT pg_sleep(4)", {})

    assert "no answer within" in str(caught.value)
    await sessions.close()
