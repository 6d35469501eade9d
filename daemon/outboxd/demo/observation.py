"""One look at everything: what the view shows and the end is decided by."""

import time
from collections.abc import Callable

import psycopg
from msgspec import Struct
from psycopg import sql

from outboxd.core.errors import Unavailable
from outboxd.demo.counting import Count, Outbox, QueueDepth, count, count_outbox
from outboxd.demo.mail import MailReader
from outboxd.demo.metrics import ChildView, children
from outboxd.demo.queues import Queues
from outboxd.demo.scene import Scene

RECENT_EFFECTS = 500

LATENCIES = """
    WITH recent AS (
        SELECT event_id, handler, at FROM shop.effects ORDER BY seq DESC LIMIT %(recent)s
    )
    SELECT recent.handler,
           percentile_cont(0.50) WITHIN GROUP (ORDER BY recent.at - event.occurred_at),
           percentile_cont(0.99) WITHIN GROUP (ORDER BY recent.at - event.occurred_at),
           count(*) FILTER (WHERE recent.at > clock_timestamp() - interval '5 seconds') / 5.0
      FROM recent
      JOIN {schema}.outbox_events AS event ON event.id = recent.event_id
     GROUP BY recent.handler
     ORDER BY recent.handler
"""


class Flow(Struct, frozen=True, kw_only=True):
    """How fast one handler works: from the event's insert to its effect, and effects a second."""

    handler: str
    p50_seconds: float
    p99_seconds: float
    rate: float


class Observation(Struct, frozen=True, kw_only=True):
    """What was seen at `at` (monotonic)."""

    at: float
    count: Count
    outbox: Outbox
    queues: dict[str, QueueDepth]
    dead_letters: dict[str, QueueDepth]
    flows: tuple[Flow, ...]
    children: tuple[ChildView, ...]


class Observer:
    """Looks at tables, queues, mailbox and /metrics of a scene."""

    def __init__(
        self,
        dsn: str,
        schema: str,
        queues: Queues,
        mail: MailReader,
        metrics: Callable[[], str | None],
    ) -> None:
        """`metrics` gives the text of /metrics, or None when nobody answers."""
        self._dsn = dsn
        self._schema = schema
        self._queues = queues
        self._mail = mail
        self._metrics = metrics
        self._children: tuple[ChildView, ...] = ()

    def look(self) -> Observation:
        """Everything. Raises Unavailable while the database or the queues are away."""
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                return self._look(connection)
        except psycopg.OperationalError as error:
            raise Unavailable(f"counting in the database: {error}") from error

    def _look(self, connection: psycopg.Connection) -> Observation:
        # Upstream first: what moves on between two reads is then counted twice, never not at all.
        outbox = count_outbox(connection, self._schema)
        queues = self._queues.depths()
        dead_letters = self._queues.dead_letters()
        counted = count(
            connection,
            self._schema,
            outbox=outbox,
            queues=queues,
            dead_letters=dead_letters,
            mail=self._mail.read(),
        )
        return Observation(
            at=time.monotonic(),
            count=counted,
            outbox=outbox,
            queues=queues,
            dead_letters=dead_letters,
            flows=self._flows(connection),
            children=self.children(),
        )

    def children(self) -> tuple[ChildView, ...]:
        """The children; as they were last seen while the supervisor does not answer."""
        text = self._metrics()
        if text is not None:
            self._children = children(text)
        return self._children

    def _flows(self, connection: psycopg.Connection) -> tuple[Flow, ...]:
        query = sql.SQL(LATENCIES).format(schema=sql.Identifier(self._schema))
        rows = connection.execute(query, {"recent": RECENT_EFFECTS})
        return tuple(
            Flow(
                handler=handler,
                p50_seconds=p50.total_seconds(),
                p99_seconds=p99.total_seconds(),
                rate=float(rate),
            )
            for handler, p50, p99, rate in rows
        )


def observer_of(scene: Scene) -> Observer:
    """The observer of a running scene."""
    return Observer(
        scene.dsn,
        scene.schema,
        scene.queues,
        MailReader(scene.mail),
        scene.supervisor.metrics,
    )
