"""What PostgreSQL says of itself: whether a daemon can live with this server, role and pooler."""

import math
from collections.abc import Iterator

from outboxd.core.live.facts import Activity, DatabaseFacts, Direct, Pooling, Server
from outboxd.core.live.finding import Code, Finding
from outboxd.core.settings import Settings

OLDEST_VERSION = 140_000
"""The oldest that gets security fixes."""

CLOCK_SECONDS = 5.0

HELD_BYTES = 1 << 30

RELAY_CONNECTIONS = 5
POOL_CONNECTIONS = 2
"""docs/operations.md, "how many server connections"."""


def server_findings(settings: Settings, facts: DatabaseFacts) -> Iterator[Finding]:
    """From what stops everything to what may be meant."""
    server = facts.server
    yield from _state(server)
    yield from _session(settings, server)
    yield from _clock(server)
    yield from _pooler(settings, facts)
    yield from _connections(settings, server, pooled=facts.pooling is not Pooling.NONE)
    if isinstance(facts.activity, Activity):
        yield from _transactions(facts.activity, server.role)
    if isinstance(facts.slots, tuple):
        for slot in facts.slots:
            if not slot.active and slot.held_bytes >= HELD_BYTES:
                yield Finding(
                    Code.SLOT_HOLDS_WAL,
                    f"replication slot {slot.name}",
                    f"nobody reads it, and it holds {slot.held_bytes / (1 << 30):.1f} GiB of WAL",
                    "the server's disk fills up, and then nobody can write",
                    f"reconnect its reader, or SELECT pg_drop_replication_slot('{slot.name}')",
                )


def _state(server: Server) -> Iterator[Finding]:
    subject = f"database {server.database}"
    if server.standby or server.settings.get("default_transaction_read_only") == "on":
        yield Finding(
            Code.SERVER_READ_ONLY,
            subject,
            "it is a standby" if server.standby else "transactions are read-only by default",
            "nothing can be marked: the relay publishes nothing, handlers do not run",
            "let [database] url lead to the primary, with target_session_attrs=read-write",
        )
    if server.version_number < OLDEST_VERSION:
        yield Finding(
            Code.SERVER_OLD,
            subject,
            f"PostgreSQL {server.version} is no longer supported by its makers",
            "outboxd is not tested with it",
            f"upgrade to {OLDEST_VERSION // 10_000} or newer",
        )
    careless = [
        name
        for name in ("fsync", "full_page_writes", "synchronous_commit")
        if server.settings.get(name) == "off"
    ]
    if careless:
        yield Finding(
            Code.SERVER_NOT_DURABLE,
            subject,
            f"{', '.join(careless)}: off",
            "a crash of the server forgets commits that were confirmed: events are lost, and marks",
            "switch it on, at least for the roles of producers and of the daemon",
        )
    if server.settings.get("autovacuum") == "off" or server.settings.get("track_counts") == "off":
        yield Finding(
            Code.AUTOVACUUM_OFF,
            subject,
            "autovacuum is off for the whole server",
            "the outbox grows with every event, and reading it gets slower and slower",
            "set autovacuum = on and track_counts = on",
        )
    encoding = server.settings.get("server_encoding", "UTF8")
    if encoding != "UTF8":
        yield Finding(
            Code.SERVER_ENCODING,
            subject,
            f"its encoding is {encoding}",
            "events with characters that it does not have cannot be stored",
            "use a database with the encoding UTF8",
        )


def _session(settings: Settings, server: Server) -> Iterator[Finding]:
    subject = f"role {server.role}"
    isolation = server.settings.get("default_transaction_isolation", "read committed")
    if isolation != "read committed":
        yield Finding(
            Code.ISOLATION,
            subject,
            f"its transactions are {isolation} by default",
            "copies of a message that meet fail with serialization errors and are tried again, "
            "where one would have waited for the other",
            f"ALTER ROLE {server.role} SET default_transaction_isolation = 'read committed'",
        )
    longest = max(
        (
            handler.timeout_seconds
            for queue in settings.queues.values()
            for handler in queue.handlers
            if handler.inbox == "transaction"
        ),
        default=0.0,
    )
    for name in (
        "statement_timeout",
        "idle_in_transaction_session_timeout",
        "transaction_timeout",
    ):
        allowed = _milliseconds(server, name)
        if 0 < allowed < longest * 1000:
            yield Finding(
                Code.TIMEOUT_SHORT,
                subject,
                f"its {name} is {allowed / 1000:g} s, and a handler with a transaction may take "
                f"{longest:g} s",
                "the server ends such a handler's transaction or connection while it works, which "
                "is no fault of the handler's and is tried again in vain",
                f"raise {name} for the role, or lower the handler's timeout_seconds",
            )


def _clock(server: Server) -> Iterator[Finding]:
    if abs(server.ahead_seconds) >= CLOCK_SECONDS:
        direction = "ahead of" if server.ahead_seconds > 0 else "behind"
        yield Finding(
            Code.DATABASE_CLOCK,
            f"database {server.database}",
            f"its clock is {abs(server.ahead_seconds):.0f} s {direction} this machine's",
            "ages and latencies in /metrics are wrong by as much; leases are not, for they are "
            "counted on one clock each",
            "let both machines keep time by NTP",
        )


def _pooler(settings: Settings, facts: DatabaseFacts) -> Iterator[Finding]:
    subject = f"database {facts.server.database}"
    match facts.pooling:
        case Pooling.STATEMENT:
            yield Finding(
                Code.POOLER_STATEMENT,
                subject,
                "a pooler in between allows no transactions of several statements",
                "no handler with an inbox can run",
                "set pool_mode = transaction",
            )
        case Pooling.TRANSACTION:
            yield Finding(
                Code.POOLER,
                subject,
                "a pooler in between gives each transaction a server connection",
                "handlers that keep something in the session lose it; calls wait for their turn "
                f"when its pool is smaller than about {connections_needed(settings)}",
                "see docs/operations.md, section about PgBouncer",
            )
        case _:
            pass
    relay = settings.relay
    if relay is None or not relay.wake_up:
        return
    if facts.wakes_relays is False:
        yield Finding(
            Code.WAKE_UP_DISABLED,
            subject,
            "[relay] wake_up is on, and the trigger outbox_events_wake_sleepers is disabled",
            "commits wake nobody: the relay reads by the clock, as without wake_up",
            "enable the trigger as docs/operations.md says",
        )
    direct = facts.direct
    if isinstance(direct, Direct) and not direct.same_database:
        yield Finding(
            Code.DIRECT_ELSEWHERE,
            subject,
            "[database] direct_url leads to another server or database than url",
            "commits wake nobody: the relay listens where no producer notifies",
            "let both lead to the same database",
        )
    listening = direct.pooling if isinstance(direct, Direct) else facts.pooling
    if listening in (Pooling.TRANSACTION, Pooling.STATEMENT):
        yield Finding(
            Code.WAKE_UP_POOLED,
            subject,
            "[relay] wake_up is on, and its LISTEN would go through a transaction pooler",
            "commits wake nobody: the relay reads by the clock, as without wake_up",
            "set [database] direct_url, which leads past the pooler",
        )


def connections_needed(settings: Settings) -> int:
    """How many a daemon with all its parts holds when every handler is at work."""
    relay = RELAY_CONNECTIONS if settings.relay is not None else 0
    pools = 0
    for name in settings.consumed:
        queue = settings.queues[name]
        calls = [
            math.ceil(queue.concurrency / handler.batch)
            for handler in queue.handlers
            if handler.inbox in ("transaction", "own")
        ]
        pools += queue.processes * max(calls, default=0) + POOL_CONNECTIONS
    return relay + pools


def _connections(settings: Settings, server: Server, *, pooled: bool) -> Iterator[Finding]:
    """Behind a pooler it is the pooler that connects, and its size cannot be asked for."""
    if pooled:
        return
    need = connections_needed(settings)
    reserved = 0 if server.superuser else _reserved(server)
    shared = _integer(server, "max_connections") - reserved
    # Neither holds for a superuser (CREATE ROLE, CREATE DATABASE: "CONNECTION LIMIT").
    limits = () if server.superuser else (server.role_limit, server.database_limit)
    own_limits = [each for each in limits if each >= 0]
    most = min([shared, *own_limits])
    needed = (
        f"this configuration holds up to {need} connections (relay, and concurrency x processes "
        "of handlers with a transaction)"
    )
    fix = "lower concurrency, raise max_connections or the role's limit, or use PgBouncer"
    if need > most:
        yield Finding(
            Code.CONNECTIONS_TOO_FEW,
            f"role {server.role}",
            f"{needed}, and this role can have {most}",
            "under load connections are refused, which is an outage of the database to outboxd and "
            "to all others on it",
            fix,
        )
    elif need + server.others > shared:  # others take nothing of a limit of this role's own
        yield Finding(
            Code.CONNECTIONS_TIGHT,
            f"role {server.role}",
            f"{needed}, and of the server's {shared} others hold {server.others} now",
            "under load connections are refused, to outboxd or to the others",
            fix,
        )


def _transactions(activity: Activity, role: str) -> Iterator[Finding]:
    for each in activity.old:
        yield Finding(
            Code.TRANSACTION_OLD,
            each.who,
            f"it has been open for {each.age_seconds / 60:.0f} minutes",
            "vacuum cannot remove what has died since: reading the outbox gets slower, and with "
            "wake_up the relay does not sleep",
            "end it; bound such with idle_in_transaction_session_timeout",
        )
    if not activity.all_visible:
        yield Finding(
            Code.NOT_VISIBLE,
            f"role {role}",
            "it cannot see how old other roles' transactions are",
            "old ones among them would not be told here",
            f"GRANT pg_read_all_stats TO {role}, if they should be",
        )


def _reserved(server: Server) -> int:
    return _integer(server, "superuser_reserved_connections") + _integer(
        server, "reserved_connections"
    )


def _integer(server: Server, name: str) -> int:
    text = server.settings.get(name, "")
    return int(text) if text.isdecimal() else 0


def _milliseconds(server: Server, name: str) -> int:
    """In the unit that pg_settings has for these."""
    return _integer(server, name)
