"""An outbox with events in every state, and the commands that work on it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from tests.cli.conftest import Cli, Ran

CONFIGURATION = """
[database]
url = "{url}"
[relay]
[[relay.routes]]
events = "order.*"
to = ["sqs:orders"]
[queues.orders]
[[queues.orders.handlers]]
event = "*"
handler = "shop:ship"
name = "ship"
"""


class Scene:
    """A configured outbox; every event is of the aggregate type `order`."""

    def __init__(
        self, cli: Cli, folder: Path, url: str, configuration: str = CONFIGURATION
    ) -> None:
        self.url = url
        self._cli = cli
        (folder / "outboxd.toml").write_text(configuration.format(url=url))

    def run(self, *argv: str) -> Ran:
        return self._cli("outbox", *argv)

    def json(self, *argv: str) -> Any:
        ran = self.run(*argv, "--json")
        assert ran.code == 0, ran.err
        return json.loads(ran.out)

    def seqs(self, *argv: str) -> list[int]:
        """What a listing shows."""
        return [event["seq"] for event in self.json("list", *argv)["events"]]

    def ask(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(
            self.url, autocommit=True, options="-c search_path=outboxd"
        ) as connection:
            cursor = connection.execute(query.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def insert(self, *aggregates: str, event_type: str = "order.placed") -> list[int]:
        rows = self.ask(
            "INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload)"
            " SELECT %s, 'order', id, '{\"secret\": 1}'"
            "   FROM unnest(%s::text[]) WITH ORDINALITY AS given(id, n) ORDER BY n RETURNING seq",
            event_type,
            list(aggregates),
        )
        return [seq for (seq,) in rows]

    def insert_one(self, aggregate: str, event_type: str = "order.placed", **columns: str) -> int:
        """One event; `columns` are SQL expressions."""
        (seq,) = self.insert(aggregate, event_type=event_type)
        for name, expression in columns.items():
            self.ask(f"UPDATE outbox_events SET {name} = {expression} WHERE seq = %s", seq)
        return seq

    def dead(self, aggregate: str, error: str = "'refused'", **columns: str) -> int:
        return self.insert_one(
            aggregate,
            dead_at="now()",
            attempts="20",
            next_attempt_at="now()",
            last_error=error,
            **columns,
        )

    def row(self, seq: int, *columns: str) -> tuple[Any, ...]:
        return self.ask(f"SELECT {', '.join(columns)} FROM outbox_events WHERE seq = %s", seq)[0]

    def ids(self, seqs: Sequence[int]) -> list[str]:
        rows = self.ask("SELECT id::text FROM outbox_events WHERE seq = ANY(%s) ORDER BY seq", seqs)
        return [each for (each,) in rows]

    def audit(self) -> list[tuple[Any, ...]]:
        return self.ask("SELECT command, operator, reason, events FROM outbox_audit ORDER BY entry")
