"""The README's own example is tried out, so that it cannot rot."""

import re
from pathlib import Path

import psycopg
import pytest
from msgspec import json

import outboxd
from outboxd.cli.main import main
from outboxd.resources import project_directory

README = (project_directory() / "README.md").read_text()


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    (found,) = (text for text in blocks if containing in text)
    return str(found)


def test_the_handler_and_its_configuration_pass_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "revenue.py").write_text(block("python", "def book_revenue"))
    (tmp_path / "outboxd.toml").write_text(block("toml", "[relay.routes]"))
    monkeypatch.setenv("DATABASE_URL", "postgresql://localhost/shop")

    assert main(["check", "--config", str(tmp_path / "outboxd.toml")]) == 0
    assert "1 handler" in capsys.readouterr().out


def test_publishing_stores_the_event_with_the_change(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE orders (id text, status text)")
        connection.execute("INSERT INTO orders VALUES ('42', 'pending')")

    scope = {"psycopg": psycopg, "outboxd": outboxd, "url": database, "order_id": "42"}
    exec(block("python", "outboxd.publish"), scope)

    with psycopg.connect(database) as connection:
        stored = connection.execute(
            "SELECT event_type, aggregate_id, payload::text FROM outboxd.outbox_events, orders"
            " WHERE status = 'paid'"
        ).fetchall()
    ((event_type, aggregate_id, payload),) = stored
    assert (event_type, aggregate_id) == ("order.paid", "42")
    assert json.decode(payload) == {"total": 4200}
