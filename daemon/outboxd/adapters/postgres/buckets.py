"""Leases on buckets in PostgreSQL, by its clock."""

import os
import socket
from collections.abc import Collection, Mapping
from uuid import UUID

from outboxd.adapters.postgres.sessions import Sessions, array, statement
from outboxd.ports.outbox import Renewal

TAKE_OVER = """
    UPDATE {schema}.outbox_buckets
       SET owner = %(relay)s, epoch = epoch + 1,
           lease_until = clock_timestamp() + %(lease)s * interval '1 second'
     WHERE owner = ANY (%(predecessors)s::uuid[])
    RETURNING bucket, epoch
"""

FORGET = "DELETE FROM {schema}.outbox_relays WHERE id = ANY (%(relays)s::uuid[])"

RENEW = """
    UPDATE {schema}.outbox_buckets
       SET lease_until = clock_timestamp() + %(lease)s * interval '1 second'
     WHERE owner = %(relay)s AND lease_until > clock_timestamp()
    RETURNING bucket, epoch
"""

SAY_ALIVE = """
    INSERT INTO {schema}.outbox_relays (id, host, pid)
    VALUES (%(relay)s, %(host)s, %(pid)s)
        ON CONFLICT (id) DO UPDATE SET seen = clock_timestamp()
    RETURNING (SELECT count(*)
                 FROM {schema}.outbox_relays other
                WHERE other.id <> %(relay)s
                  AND other.seen > clock_timestamp() - %(lease)s * interval '1 second')
"""

# Materialized: a LIMIT with row locks inside a join may be executed again and win too many.
CLAIM = """
    WITH free AS MATERIALIZED (
        SELECT bucket
          FROM {schema}.outbox_buckets
         WHERE owner IS NULL OR lease_until <= clock_timestamp()
         ORDER BY random()
         LIMIT %(count)s
           FOR UPDATE SKIP LOCKED
    )
    UPDATE {schema}.outbox_buckets held
       SET owner = %(relay)s, epoch = epoch + 1,
           lease_until = clock_timestamp() + %(lease)s * interval '1 second'
      FROM free
     WHERE held.bucket = free.bucket
    RETURNING held.bucket, held.epoch
"""

RELEASE = """
    UPDATE {schema}.outbox_buckets held
       SET owner = NULL, lease_until = NULL
      FROM unnest(%(buckets)s::smallint[], %(epochs)s::bigint[]) given(bucket, epoch)
     WHERE held.bucket = given.bucket AND held.epoch = given.epoch AND held.owner = %(relay)s
"""


class PostgresBuckets:
    """Ownership in single statements, on a connection of its own: a renewal must not queue behind
    a read."""

    def __init__(self, sessions: Sessions, schema: str) -> None:
        self._session = sessions.session()
        self._take_over = statement(TAKE_OVER, schema)
        self._forget = statement(FORGET, schema)
        self._renew = statement(RENEW, schema)
        self._say_alive = statement(SAY_ALIVE, schema)
        self._claim = statement(CLAIM, schema)
        self._release = statement(RELEASE, schema)

    async def take_over(
        self, relay: UUID, predecessors: Collection[UUID], lease_seconds: float
    ) -> dict[int, int]:
        dead = list(predecessors)
        taken = await self._session.rows(
            self._take_over, {"relay": relay, "predecessors": dead, "lease": lease_seconds}
        )
        await self._session.run(self._forget, {"relays": dead})
        return dict(taken)

    async def renew(self, relay: UUID, lease_seconds: float) -> Renewal:
        renewed = await self._session.rows(self._renew, {"relay": relay, "lease": lease_seconds})
        ((others,),) = await self._session.rows(
            self._say_alive,
            {
                "relay": relay,
                "lease": lease_seconds,
                "host": socket.gethostname(),
                "pid": os.getpid(),
            },
        )
        return Renewal(dict(renewed), others + 1)

    async def claim(self, relay: UUID, count: int, lease_seconds: float) -> dict[int, int]:
        return dict(
            await self._session.rows(
                self._claim, {"relay": relay, "count": count, "lease": lease_seconds}
            )
        )

    async def release(self, relay: UUID, epochs: Mapping[int, int]) -> None:
        await self._session.run(
            self._release,
            {
                "relay": relay,
                "buckets": array(epochs),
                "epochs": array(epochs.values()),
            },
        )

    async def leave(self, relay: UUID) -> None:
        await self._session.run(self._forget, {"relays": [relay]})
