"""One look at everything: what the view shows and the end is decided by."""

import time
from collections.abc import Callable, Mapping

import msgspec
import psycopg
from msgspec import Struct

from outboxd.core.errors import Unavailable
from outboxd.demo.counting import Count, Outbox, QueueDepth, count, count_outbox
from outboxd.demo.flows import Elsewhere, count_flows
from outboxd.demo.mail import MailReader
from outboxd.demo.metrics import ChildView, children, pids
from outboxd.demo.partners import Partners
from outboxd.demo.queues import Queues
from outboxd.demo.s3_and_ses import S3AndSes
from outboxd.demo.scene import Scene
from outboxd.demo.speeds import Speed, measure

Ask = Callable[[str], str | None]
"""The text of a path of the supervisor's, whatever its status; None when nobody answers."""


class Observation(Struct, frozen=True, kw_only=True):
    """What was seen; what was counted in the database was counted at `at` (monotonic).

    `counting_seconds` is how long that took: it grows with the number of orders.
    """

    at: float
    counting_seconds: float
    count: Count
    outbox: Outbox
    queues: dict[str, QueueDepth]
    dead_letters: dict[str, QueueDepth]
    speeds: Mapping[str, Speed]
    children: tuple[ChildView, ...]


class Observer:
    """Looks at tables, queues, mailboxes, partners, processes and /metrics of a scene.

    Every method raises Unavailable while what it asks is away.
    """

    def __init__(
        self,
        dsn: str,
        schema: str,
        queues: Queues,
        elsewhere: Callable[[], Elsewhere],
        ask: Ask,
    ) -> None:
        self._dsn = dsn
        self._schema = schema
        self._queues = queues
        self._elsewhere = elsewhere
        self._ask = ask
        self._children: tuple[ChildView, ...] = ()

    def look(self) -> Observation:
        """Everything."""
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                return self._look(connection)
        except psycopg.OperationalError as error:
            raise Unavailable(f"counting in the database: {error}") from error

    def look_again(self, before: Observation) -> Observation:
        """What costs next to nothing, however many orders there are, beside what was counted."""
        return msgspec.structs.replace(
            before,
            queues=self._queues.depths(),
            dead_letters=self._queues.dead_letters(),
            children=self.children(),
        )

    def children(self) -> tuple[ChildView, ...]:
        """The children; as they were last seen while the supervisor does not answer."""
        metrics, health = self._ask("/metrics"), self._ask("/healthz?verbose")
        if metrics is not None and health is not None:
            processes = pids(health)
            self._children = tuple(
                msgspec.structs.replace(child, pid=processes.get(child.name))
                for child in children(metrics)
            )
        return self._children

    def _look(self, connection: psycopg.Connection) -> Observation:
        began_at = time.monotonic()
        # Upstream first: what moves on between two reads is then counted twice, never not at all.
        outbox = count_outbox(connection, self._schema)
        queues = self._queues.depths()
        dead_letters = self._queues.dead_letters()
        flows = count_flows(connection, self._elsewhere())
        counted = count(flows, outbox=outbox, queues=queues, dead_letters=dead_letters)
        speeds = measure(connection, self._schema)
        at = time.monotonic()
        return Observation(
            at=at,
            counting_seconds=at - began_at,
            count=counted,
            outbox=outbox,
            queues=queues,
            dead_letters=dead_letters,
            speeds=speeds,
            children=self.children(),
        )


def observer_of(scene: Scene) -> Observer:
    """The observer of a running scene."""
    return Observer(
        scene.dsn,
        scene.schema,
        scene.queues,
        _Elsewhere(MailReader(scene.mail), scene.s3_and_ses, scene.partners).look,
        scene.supervisor.ask,
    )


class _Elsewhere:
    """Everybody whom the shop talks to."""

    def __init__(self, mail: MailReader, s3_and_ses: S3AndSes, partners: Partners) -> None:
        self._mail = mail
        self._s3_and_ses = s3_and_ses
        self._partners = partners

    def look(self) -> Elsewhere:
        """What they have of the shop now."""
        return Elsewhere(
            payment_mail=self._mail.read(),
            confirmation_mail=self._s3_and_ses.mail(),
            documents=self._s3_and_ses.documents(),
            partners=self._partners.counts(),
        )
