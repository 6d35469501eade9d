import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from outboxd.adapters.migrations import Migrations
from outboxd.demo.postgres import embedded_postgres
from outboxd.resources import project_directory
from tests.system.scene import Scene, eventually, handler

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def test_a_database_that_is_away_at_the_start_and_later_costs_no_restart_and_no_attempt(
    aws_endpoint: str, tmp_path: Path
) -> None:
    with embedded_postgres() as server:
        dsn = server.create_database("test")
        Migrations(dsn, "outboxd", project_directory() / "migrations" / "outboxd").up()
        scene = Scene(dsn, aws_endpoint, tmp_path)
        scene.configure(handler("note"))
        server.stop()

        with scene.daemon():
            server.start()
            scene.publish("note.wanted", 50)
            eventually(lambda: len(scene.effects("note")) == 50)

            server.restart("immediate")
            scene.publish("note.wanted", 50)
            eventually(lambda: len(scene.effects("note")) == 100 and scene.messages_left() == 0)

            assert scene.metric("outboxd_child_restarts_total") == 0
        assert attempts(scene.dsn) == 0


def attempts(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT (SELECT coalesce(sum(attempts), 0) FROM outboxd.outbox_events)"
            "     + (SELECT coalesce(sum(attempts), 0) FROM outboxd.handler_failures)"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_tables_that_are_not_migrated_end_the_start_with_what_to_do(
    bare_database: str, aws_endpoint: str, tmp_path: Path
) -> None:
    scene = Scene(bare_database, aws_endpoint, tmp_path)
    scene.configure(handler("note"))

    run = subprocess.run(
        [sys.executable, "-m", "outboxd", "run", "--config", str(scene.configuration)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode == 3
    assert "run `outboxd migrate`" in run.stdout
