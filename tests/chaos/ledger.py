"""What has happened, counted from tables, queues and a file: never from the daemon's counters."""

import json
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from msgspec import Struct

from outboxd.adapters.sqs.client import sqs_client
from outboxd.core.settings import AwsSettings
from tests.chaos.workload import AFTER, HANDLERS

if TYPE_CHECKING:
    from types_boto3_sqs.type_defs import MessageTypeDef

EFFECTS_TABLE = """
    CREATE TABLE public.effects (
        number bigint GENERATED ALWAYS AS IDENTITY,
        event_id uuid, handler text, pid int, at timestamptz DEFAULT clock_timestamp(),
        aggregate text, position int
    )
"""

EVENTS = "SELECT id::text, event_type FROM outboxd.outbox_events"
UNPUBLISHED = "SELECT count(*) FROM outboxd.outbox_events WHERE published_at IS NULL"
EFFECTS = "SELECT event_id::text, handler FROM public.effects"

COPIES = {
    "effects": "COPY (SELECT * FROM public.effects ORDER BY number) TO STDOUT CSV HEADER",
    "events": "COPY (SELECT * FROM outboxd.outbox_events ORDER BY seq) TO STDOUT CSV HEADER",
}

# Effects of one group are committed one after the other, and take their numbers in between.
ORDERED = """
    SELECT aggregate, position FROM public.effects WHERE handler = 'ordered' ORDER BY number
"""


class Letter(Struct, frozen=True):
    """A dead letter; without a reason SQS itself has moved it."""

    queue: str
    body: str
    reason: str
    event_id: str | None
    error: str

    @property
    def key(self) -> str:
        """By which poison is known: the event's id, or the body of what is no event."""
        return self.body if self.event_id is None else self.event_id


class Ledger(Struct, frozen=True, kw_only=True):
    """The facts: `events` maps ids to types, `effects` counts pairs of id and handler."""

    events: dict[str, str]
    unpublished: int
    effects: Counter[tuple[str, str]]
    after: Counter[str]
    inversions: int
    letters: tuple[Letter, ...]

    def missing(self, poison: dict[str, str]) -> list[tuple[str, str]]:
        """Pairs of event and handler that must have taken effect and have not."""
        return [
            (id, handler)
            for id, kind in self.events.items()
            for handler in HANDLERS.get(kind, ())
            if (id, handler) not in self.effects and (id not in poison or kind == "half")
        ] + [
            (id, AFTER) for id, kind in self.events.items() if kind == AFTER and not self.after[id]
        ]


def read_ledger(dsn: str, after: Path, letters: tuple[Letter, ...]) -> Ledger:
    """Everything at one moment at which nothing moves any more."""
    with closing(psycopg.connect(dsn)) as connection:
        events: dict[str, str] = dict(connection.execute(EVENTS).fetchall())
        ((unpublished,),) = connection.execute(UNPUBLISHED).fetchall()
        effects = Counter((id, handler) for id, handler in connection.execute(EFFECTS))
        inversions = _inversions(connection)
    lines = after.read_text().split() if after.exists() else []
    return Ledger(
        events=events,
        unpublished=unpublished,
        effects=effects,
        after=Counter(lines),
        inversions=inversions,
        letters=letters,
    )


def copy_table(dsn: str, table: str, path: Path) -> None:
    """The `effects`, or the `events` of the outbox, as CSV with a header."""
    with (
        closing(psycopg.connect(dsn)) as connection,
        path.open("wb") as file,
        connection.cursor().copy(COPIES[table]) as rows,
    ):
        for row in rows:
            file.write(row)


def _inversions(connection: psycopg.Connection) -> int:
    """How often an event of a group took effect after a later one."""
    latest: Counter[str] = Counter()
    found = 0
    for aggregate, position in connection.execute(ORDERED):
        found += position < latest[aggregate]
        latest[aggregate] = max(latest[aggregate], position)
    return found


def read_letters(settings: AwsSettings, queue: str) -> list[Letter]:
    """Everything in a dead-letter queue, which is empty afterwards: letters in flight would block
    those of their group."""
    client = sqs_client(settings, connections=1)
    found = []
    with closing(client):
        url = client.get_queue_url(QueueName=queue)["QueueUrl"]
        while messages := client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        ).get("Messages"):
            for message in messages:
                found.append(_letter(queue, message))
                client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


def _letter(queue: str, message: "MessageTypeDef") -> Letter:
    attribute = message.get("MessageAttributes", {}).get("outboxd")
    told: dict[str, Any] = {}
    if attribute is not None:
        told = json.loads(attribute.get("StringValue", "{}"))
    return Letter(
        queue=queue,
        body=message.get("Body", ""),
        reason=told.get("reason", "none: moved by SQS"),
        event_id=told.get("event_id"),
        error=told.get("error", ""),
    )
