"""The whole daemon behind PgBouncer in transaction mode: nothing may rest on a session."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from outboxd import NewEvent, publish
from outboxd.adapters.configuration import load_settings
from outboxd.cli.main import main
from outboxd.demo.postgres import EmbeddedPostgres, embedded_postgres
from outboxd.resources import project_directory
from tests.system.pgbouncer import PgBouncer, pgbouncer
from tests.system.scene import HANDLER, Scene, eventually, handler

pytestmark = [pytest.mark.packages, pytest.mark.timeout(180)]

# A handler of batches has to be the only one of its events.
HANDLERS = {"in_thread": "single", "in_loop": "single", "in_own": "single", "in_batch": "many"}

TABLES = """
    CREATE TABLE public.effects (
        seq bigint GENERATED ALWAYS AS IDENTITY, event_id uuid, handler text
    );
    CREATE TABLE public.limits (moment text, name text, setting text);
"""

# What the relay's statements run under: the trigger sees each mark of an event as published.
SAMPLE = """
    CREATE FUNCTION public.sample() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO public.limits
        SELECT 'relay', name, setting FROM pg_settings
         WHERE name IN ('statement_timeout', 'lock_timeout', 'search_path');
        RETURN new;
    END $$;
    CREATE TRIGGER sample BEFORE UPDATE OF published_at ON outboxd.outbox_events
       FOR EACH ROW EXECUTE FUNCTION public.sample();
"""


class Pooled(Scene):
    """A scene whose daemon and commands know the pooler only; the test itself goes direct."""

    def __init__(self, direct: str, pooled: str, endpoint: str, directory: Path) -> None:
        super().__init__(pooled, endpoint, directory)
        self.pooled = pooled
        self.published: list[tuple[str, str]] = []
        with psycopg.connect(direct) as connection:
            connection.execute(TABLES)
        self.configure(*(_handler(name) for name in HANDLERS), handler("reject"))
        self.dsn = direct

    def publish_pooled(self, count: int) -> None:
        """Commit events of 20 aggregates, a transaction for each."""
        with psycopg.connect(self.pooled, prepare_threshold=None) as connection:
            for number in range(count):
                type = ("single", "many")[number // 20 % 2]
                id = publish(connection, NewEvent(type, "test", f"aggregate-{number % 20}", {}))
                connection.commit()
                self.published.append((str(id), type))

    def expected(self, name: str) -> list[str]:
        """The ids of the events of a handler."""
        return sorted(id for id, type in self.published if type == HANDLERS[name])

    def done(self) -> bool:
        return self.messages_left() == 0 and all(
            len(self.effects(name)) >= len(self.expected(name)) for name in HANDLERS
        )

    def limits(self, moment: str) -> dict[str, set[str]]:
        """All values of each setting that statements of this kind ran under."""
        found: dict[str, set[str]] = {}
        with self.database() as connection:
            rows = connection.execute(
                "SELECT DISTINCT name, setting FROM public.limits WHERE moment = %s", [moment]
            )
            for name, setting in rows:
                found.setdefault(name, set()).add(setting)
        return found

    def command(self, *arguments: str) -> int:
        return main([*arguments, "--config", str(self.configuration)])


def _handler(name: str) -> str:
    inbox = "own" if name == "in_own" else "transaction"
    table = HANDLER.format(event=HANDLERS[name], function=name, inbox=inbox, timeout=30)
    batch = "batch = 10\nbatch_wait_seconds = 0.05\n" if name == "in_batch" else ""
    return table.replace("scenes:", "pooled:") + batch


@pytest.fixture
def server() -> Iterator[EmbeddedPostgres]:
    """A server of this test alone, which may be restarted."""
    with embedded_postgres() as server:
        yield server


@contextmanager
def pooled_scene(
    server: EmbeddedPostgres,
    endpoint: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    more: str = "",
) -> Iterator[tuple[Pooled, PgBouncer]]:
    direct = server.create_database("test")
    with pgbouncer(server.dsn, pool_size=4, more=more) as pooler:
        pooled = pooler.pooled(direct)
        monkeypatch.setenv("POOLED_DSN", pooled)
        scene = Pooled(direct, pooled, endpoint, folder)
        assert scene.command("migrate") == 0
        yield scene, pooler


def test_restarts_of_the_pooler_and_of_the_database_behind_it_cost_nothing(
    server: EmbeddedPostgres,
    aws_endpoint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        # Twelve and more want a server at once: they wait for one of four.
        pooled_scene(server, aws_endpoint, tmp_path, monkeypatch, documented()) as (scene, pooler),
        scene.daemon(),
    ):
        scene.publish_pooled(100)
        eventually(lambda: len(scene.effects("in_thread")) > 10)
        pooler.restart()
        scene.publish_pooled(100)
        eventually(lambda: len(scene.effects("in_thread")) > 70, seconds=60)
        server.restart("immediate")
        publish_when_it_is_back(scene, 100)
        eventually(scene.done, seconds=90)
        assert scene.metric("outboxd_child_restarts_total") == 0

        for name in HANDLERS:
            assert sorted(scene.effects(name)) == scene.expected(name)
        assert scene.letters() == []
        # A handler that connects by itself and cannot has failed, as far as anybody can tell: the
        # pooler may be back when the daemon looks for its mark.
        assert scene.attempts(without="in_own") == 0
        with scene.database() as connection:
            row = connection.execute(
                "SELECT count(*), count(published_at), sum(attempts) FROM outboxd.outbox_events"
            ).fetchone()
        assert row is not None
        assert row[0] == row[1] == len(scene.published) >= 300
        assert row[2] == 0


def documented() -> str:
    """PgBouncer's settings as docs/operations.md has them, but for the size of the pool."""
    page = (project_directory() / "docs" / "operations.md").read_text()
    (block,) = re.findall(r"```ini\n\[pgbouncer\]\n(.*?)```", page, re.S)
    return re.sub(r"default_pool_size = \d+\n", "", block)


def publish_when_it_is_back(scene: Pooled, count: int) -> None:
    """As soon as the pooler has noticed that its servers are new: a producer's own outage."""

    def one_is() -> bool:
        try:
            scene.publish_pooled(1)
        except psycopg.OperationalError:
            return False
        return True

    eventually(one_is)
    scene.publish_pooled(count)


@pytest.mark.parametrize("way", ["direct", "pooled", "pooled, options ignored"])
def test_limits_hold_where_they_should_and_stay_with_nobody(
    way: str,
    server: EmbeddedPostgres,
    aws_endpoint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The relay's are its own. A handler's are the database's or the role's."""
    more = "ignore_startup_parameters = options, extra_float_digits" if "ignored" in way else ""
    with pooled_scene(server, aws_endpoint, tmp_path, monkeypatch, more) as (scene, _):
        with scene.database() as connection:
            connection.execute("ALTER DATABASE test SET statement_timeout = '61s'")
            connection.execute("ALTER DATABASE test SET lock_timeout = '62s'")
            connection.execute(
                "ALTER DATABASE test SET idle_in_transaction_session_timeout = '63s'"
            )
            connection.execute(SAMPLE)
        server.restart()  # so that every connection to it has logged in after that
        if way == "direct":
            text = scene.configuration.read_text()
            scene.configuration.write_text(text.replace(scene.pooled, scene.dsn))
            assert load_settings(scene.configuration, {}).database is not None

        with scene.daemon():
            publish_when_it_is_back(scene, 60)
            eventually(scene.done)

        assert scene.limits("relay") == {
            "statement_timeout": {"5000"},
            "lock_timeout": {"2000"},
            "search_path": {"outboxd"},
        }
        assert scene.limits("handler") == {
            "statement_timeout": {"61000"},
            "lock_timeout": {"62000"},
            "idle_in_transaction_session_timeout": {"63000"},
        }


def test_commands_work_through_the_pooler(
    server: EmbeddedPostgres,
    aws_endpoint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    more = "ignore_startup_parameters = options"
    with pooled_scene(server, aws_endpoint, tmp_path, monkeypatch, more) as (scene, _):
        with scene.database() as connection:
            strays = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
            ).fetchall()
        assert strays == [("effects",), ("limits",)], "the migrations made no table in public"
        assert scene.command("check") == 0
        (id,) = scene.publish("reject.wanted")
        with scene.daemon():
            scene.publish_pooled(40)
            eventually(scene.done)
            eventually(lambda: scene.metric("outboxd_dead_letters_total") == 1)

        def said(*arguments: str) -> Any:
            capsys.readouterr()
            assert scene.command(*arguments, "--json") == 0
            return json.loads(capsys.readouterr().out)

        assert said("migrate")["applied"] == []
        assert "no such customer" in json.dumps(said("dlq", "list", "work"))
        assert id in json.dumps(said("where", id))
        assert said("outbox", "list", "--state", "published")
        assert scene.command("outbox", "prune", "--older-than", "0s", "--yes") == 0
        assert scene.command("dlq", "redrive", "work", "--yes") == 0
        assert scene.command("migrate", "down", "--count", "99", "--yes") == 0
        with scene.database() as connection:
            left = connection.execute(
                "SELECT to_regclass('outboxd.outbox_events'), to_regclass('public.outbox_events')"
            ).fetchone()
        assert left == (None, None)
