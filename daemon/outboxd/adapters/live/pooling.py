"""Whether a pooler is in between, and which one: the server's own process ids tell."""

import psycopg

from outboxd.core.live.facts import Pooling

_PID = "SELECT pg_backend_pid()"


def pooling(conninfo: str, first: "psycopg.Connection[tuple[object, ...]]") -> Pooling:
    """What the open connection `first`, in autocommit, goes through.

    A pooler makes up the process id that it tells its clients. Of two clients at the same time only
    a pooler of transactions lets both have the same server process, or one of them several. Where
    each is given its own, it may still pool transactions, but had no need to.
    """
    before = _pid(first)
    if first.info.backend_pid == before:
        return Pooling.NONE
    with psycopg.connect(conninfo, autocommit=True, prepare_threshold=None) as second:
        try:
            second.execute("BEGIN")
            during = _pid(second)
            # A pool that has no other to give would wait for the one that the second now holds.
            after = before if during == before else _pid(first)
            second.execute("ROLLBACK")
        except psycopg.errors.ProtocolViolation:
            # PgBouncer: "transaction blocks not allowed in statement pooling mode"
            return Pooling.STATEMENT
        except psycopg.OperationalError as error:
            if "statement pooling" in str(error):
                return Pooling.STATEMENT
            raise
    return Pooling.TRANSACTION if during == before or after != before else Pooling.SESSION


def _pid(connection: "psycopg.Connection[tuple[object, ...]]") -> object:
    row = connection.execute(_PID).fetchone()
    return None if row is None else row[0]
