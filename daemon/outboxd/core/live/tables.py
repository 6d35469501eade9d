"""What PostgreSQL says of outboxd's tables: there, whole, readable, and cared for."""

from collections.abc import Iterator, Mapping

from outboxd.core.live.facts import DatabaseFacts, Grant, Index, Migration, Table
from outboxd.core.live.finding import Code, Finding
from outboxd.core.live.grants import needed, publishing
from outboxd.core.settings import Settings

BUCKETS = 64

SETTINGS = {
    "autovacuum_vacuum_scale_factor": "0",
    "autovacuum_vacuum_threshold": "5000",
    "autovacuum_vacuum_cost_delay": "0",
}
"""What the migrations give to outbox_events; the file says why."""

INDEXES = {
    "outbox_events_pkey": "outbox_events",
    "outbox_events_pending": "outbox_events",
    "outbox_events_dead": "outbox_events",
    "outbox_buckets_pkey": "outbox_buckets",
    "outbox_relays_pkey": "outbox_relays",
    "processed_events_pkey": "processed_events",
    "processed_events_age": "processed_events",
    "handler_failures_pkey": "handler_failures",
    "suspects_pkey": "suspects",
}

MANY_DEAD_ROWS = 100_000
"""Twenty times what should make autovacuum come."""

_MIGRATE = "run `outboxd migrate up`"
_OWNER = "as the owner of the tables"


def table_findings(settings: Settings, schema: str, facts: DatabaseFacts) -> Iterator[Finding]:
    """Versions first: what a migration that is missing would make is not told once more."""
    complete = True
    if isinstance(facts.migrations, tuple):
        yield from _versions(schema, facts.migrations)
        complete = all(each.applied for each in facts.migrations)
    if not isinstance(facts.tables, Mapping):
        return
    if facts.usage is False:
        yield Finding(
            Code.GRANT_MISSING,
            f"role {facts.server.role}",
            f"it has not USAGE on schema {schema}",
            "it sees none of the tables: nothing is published, no handler runs",
            f"GRANT USAGE ON SCHEMA {schema} TO {facts.server.role}, {_OWNER}",
        )
    lacking = facts.lacking if isinstance(facts.lacking, frozenset) else frozenset()
    wanted = needed(settings)
    for name in sorted({grant.table for grant in wanted}):
        table = facts.tables.get(name)
        if table is None and complete:
            yield _missing(f"{schema}.{name}")
        elif table is not None:
            yield from _table(f"{schema}.{name}", table)
    yield from _grants(schema, facts.server.role, wanted & lacking)
    if settings.consumed and publishing(settings) & lacking:
        yield Finding(
            Code.GRANT_PUBLISHING,
            f"role {facts.server.role}",
            f"it may not insert into {schema}.outbox_events",
            "handlers that publish (`context.publish`) fail, and are tried again",
            "give it the daemon's last grant of docs/database-roles.md, if handlers publish",
        )
    if isinstance(facts.indexes, tuple):
        if complete:
            yield from _missing_indexes(schema, facts.tables, facts.indexes)
        yield from _indexes(schema, facts.indexes)
    if settings.relay is not None:
        yield from _outbox(schema, facts, facts.tables.get("outbox_events"))


def _versions(schema: str, migrations: tuple[Migration, ...]) -> Iterator[Finding]:
    missing = [each.name for each in migrations if not each.applied]
    unknown = [each.name for each in migrations if each.unknown]
    if missing:
        yield Finding(
            Code.SCHEMA_BEHIND,
            f"schema {schema}",
            f"it lacks {len(missing)} of {len(migrations)} migrations (first: {missing[0]})",
            "relay and consumers wait, and do nothing until it has them",
            f"{_MIGRATE}, as its owner",
        )
    if unknown:
        yield Finding(
            Code.SCHEMA_AHEAD,
            f"schema {schema}",
            f"it has migrations that this version does not know (first: {unknown[0]})",
            "relay and consumers of this version wait, and do nothing",
            "upgrade outboxd, or run `outboxd migrate down` with the version that applied them",
        )


def _missing(name: str) -> Finding:
    return Finding(
        Code.TABLE_MISSING,
        f"table {name}",
        "it does not exist",
        "whoever needs it waits for it, and does nothing",
        f"{_MIGRATE}; a table that was dropped by hand has to come from a backup",
    )


def _table(name: str, table: Table) -> Iterator[Finding]:
    subject = f"table {name}"
    if table.persistence != "p":
        yield Finding(
            Code.TABLE_UNLOGGED,
            subject,
            "it is unlogged",
            "it is empty after a crash of the server and on every replica: events or marks are "
            "lost",
            f"ALTER TABLE {name} SET LOGGED, {_OWNER}",
        )
    if table.kind != "r":
        kinds = {"p": "partitioned", "v": "a view", "f": "a foreign table", "m": "a view"}
        yield Finding(
            Code.TABLE_KIND,
            subject,
            f"it is {kinds.get(table.kind, 'no ordinary table')}",
            "its indexes and settings are not those that outboxd was measured and tested with",
            "make it the table that the migrations create",
        )
    if table.hides_rows:
        yield Finding(
            Code.TABLE_ROW_SECURITY,
            subject,
            "row security applies to this role",
            "rows that a policy hides are never published, or repeated events take effect again",
            f"ALTER TABLE {name} DISABLE ROW LEVEL SECURITY, {_OWNER}",
        )
    if table.options.get("autovacuum_enabled", "true") in ("false", "off", "0", "no"):
        yield Finding(
            Code.AUTOVACUUM_OFF,
            subject,
            "autovacuum is switched off for it",
            "it grows with every event, and reading it gets slower and slower",
            f"ALTER TABLE {name} RESET (autovacuum_enabled), {_OWNER}",
        )
    if table.dead_rows > MANY_DEAD_ROWS and table.dead_rows > table.live_rows / 5:
        yield Finding(
            Code.DEAD_ROWS,
            subject,
            f"about {table.dead_rows} dead rows beside {table.live_rows} live ones",
            "vacuum does not keep up, or may not remove them: reading gets slower",
            "look for old transactions and replication slots, then VACUUM it",
        )


def _grants(schema: str, role: str, lacking: frozenset[Grant]) -> Iterator[Finding]:
    together: dict[tuple[str, str], list[str]] = {}
    for grant in sorted(lacking, key=lambda each: (each.table, each.privilege, each.column or "")):
        columns = together.setdefault((grant.table, grant.privilege), [])
        columns += [grant.column] if grant.column is not None else []
    for (table, privilege), columns in together.items():
        what = f"{privilege} ({', '.join(columns)})" if columns else privilege
        yield Finding(
            Code.GRANT_MISSING,
            f"role {role}",
            f"it has not {what} on {schema}.{table}",
            "the part that needs it makes no progress: nothing is lost, and nothing happens",
            f"GRANT {what} ON {schema}.{table} TO {role}, {_OWNER} (docs/database-roles.md)",
        )


def _missing_indexes(
    schema: str, tables: Mapping[str, Table], indexes: tuple[Index, ...]
) -> Iterator[Finding]:
    there = {index.name for index in indexes}
    for name, table in INDEXES.items():
        if table in tables and name not in there:
            yield Finding(
                Code.INDEX_MISSING,
                f"index {schema}.{name}",
                "it does not exist",
                "its table is read from one end to the other, again and again",
                "create it as the files of the migrations do",
            )


def _indexes(schema: str, indexes: tuple[Index, ...]) -> Iterator[Finding]:
    for index in indexes:
        if not index.valid:
            yield Finding(
                Code.INDEX_INVALID,
                f"index {schema}.{index.name}",
                "it is not valid: a CREATE INDEX CONCURRENTLY did not get to its end",
                "it is written with each row, and not read",
                f"REINDEX INDEX CONCURRENTLY {schema}.{index.name}, {_OWNER}",
            )
        if index.table == "outbox_events" and index.name not in INDEXES:
            unique = "; being unique it may also refuse events" if index.unique else ""
            yield Finding(
                Code.INDEX_EXTRA,
                f"index {schema}.{index.name}",
                "it is an index on the outbox that outboxd does not know",
                f"each event and, with most columns, each mark writes to it too{unique}",
                f"DROP INDEX CONCURRENTLY {schema}.{index.name}, unless somebody reads by it",
            )


def _outbox(schema: str, facts: DatabaseFacts, outbox: Table | None) -> Iterator[Finding]:
    if isinstance(facts.buckets, int) and facts.buckets != BUCKETS:
        yield Finding(
            Code.BUCKETS_INCOMPLETE,
            f"table {schema}.outbox_buckets",
            f"it has {facts.buckets} rows instead of {BUCKETS}",
            "events whose aggregates fall into a missing bucket are never published",
            f"INSERT INTO {schema}.outbox_buckets (bucket) SELECT generate_series(0, "
            f"{BUCKETS - 1}) ON CONFLICT DO NOTHING, {_OWNER}",
        )
    if isinstance(facts.sequence_cache, int) and facts.sequence_cache > 1:
        yield Finding(
            Code.SEQUENCE_CACHE,
            f"table {schema}.outbox_events",
            f"the sequence of seq is cached ({facts.sequence_cache} numbers for each session)",
            "a later event of another session gets a lower number, and is published first",
            f"ALTER TABLE {schema}.outbox_events ALTER COLUMN seq SET CACHE 1, {_OWNER}",
        )
    if outbox is None:
        return
    other = {
        name: outbox.options.get(name, "the server's default")
        for name, value in SETTINGS.items()
        if _number(outbox.options.get(name)) != _number(value)
    }
    if other:
        wanted = ", ".join(f"{name} = {SETTINGS[name]}" for name in other)
        yield Finding(
            Code.AUTOVACUUM_SETTINGS,
            f"table {schema}.outbox_events",
            "its settings are not those of the migrations: "
            + ", ".join(f"{name} is {value}" for name, value in other.items()),
            "vacuum comes later the more is kept, and each look at the pending events passes over "
            "more dead entries",
            f"ALTER TABLE {schema}.outbox_events SET ({wanted}), {_OWNER}",
        )


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
