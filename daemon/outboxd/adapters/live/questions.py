"""What PostgreSQL is asked. Catalogs and counts only; no role needs a right for the catalogs."""

from typing import LiteralString

SETTINGS = (
    "autovacuum",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "fsync",
    "full_page_writes",
    "idle_in_transaction_session_timeout",
    "max_connections",
    "reserved_connections",
    "server_encoding",
    "statement_timeout",
    "superuser_reserved_connections",
    "synchronous_commit",
    "track_counts",
    "transaction_timeout",
)

OLD_SECONDS = 300.0
"""An hour of it makes the dead rows of a busy outbox felt; a backup of a minute does not."""

# What the settings are without our own SET LOCAL.
SETTINGS_NOW: LiteralString = """
    SELECT name, reset_val FROM pg_catalog.pg_settings WHERE name = ANY (%(names)s)
"""

SERVER: LiteralString = """
    SELECT current_user::text,
           current_database()::text,
           current_setting('server_version'),
           current_setting('server_version_num')::int,
           pg_is_in_recovery(),
           r.rolconnlimit,
           d.datconnlimit,
           r.rolsuper,
           (SELECT count(*) FROM pg_catalog.pg_stat_activity a
             WHERE a.usesysid IS NOT NULL AND a.usesysid <> r.oid)
      FROM pg_catalog.pg_roles r, pg_catalog.pg_database d
     WHERE r.rolname = current_user AND d.datname = current_database()
"""

# Taken once the connection is warm, so that only half a round trip is uncertain.
CLOCK: LiteralString = "SELECT extract(epoch FROM clock_timestamp())::float8"

SAME_DATABASE: LiteralString = """
    SELECT extract(epoch FROM pg_postmaster_start_time())::text, oid::text
      FROM pg_catalog.pg_database
     WHERE datname = current_database()
"""

# row_security_active() asks about this role; it wants a right to look at the table.
TABLES: LiteralString = """
    SELECT c.relname::text,
           c.relkind::text,
           c.relpersistence::text,
           c.relrowsecurity AND (
               c.relforcerowsecurity OR NOT pg_has_role(current_user, c.relowner, 'USAGE')
           ) AND NOT (SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles
                       WHERE rolname = current_user),
           coalesce(c.reloptions, '{}'),
           coalesce(pg_stat_get_live_tuples(c.oid), 0),
           coalesce(pg_stat_get_dead_tuples(c.oid), 0)
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""

INDEXES: LiteralString = """
    SELECT i.relname::text, t.relname::text, x.indisvalid AND x.indisready, x.indisunique
      FROM pg_catalog.pg_index x
      JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
      JOIN pg_catalog.pg_class t ON t.oid = x.indrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
     WHERE n.nspname = %(schema)s
     ORDER BY 1
"""

USAGE: LiteralString = """
    SELECT has_schema_privilege(oid, 'USAGE') FROM pg_catalog.pg_namespace
     WHERE nspname = %(schema)s
"""

# By numbers instead of names: a name would raise where it is not there.
LACKING: LiteralString = """
    SELECT g.tab, g.privilege, nullif(g.col, '')
      FROM unnest(%(tables)s::text[], %(privileges)s::text[], %(columns)s::text[])
           AS g (tab, privilege, col)
      JOIN pg_catalog.pg_namespace n ON n.nspname = %(schema)s
      JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = g.tab
      LEFT JOIN pg_catalog.pg_attribute a
             ON a.attrelid = c.oid AND a.attname = g.col AND NOT a.attisdropped
     WHERE NOT CASE WHEN g.col = '' THEN has_table_privilege(c.oid, g.privilege)
                    ELSE has_column_privilege(c.oid, a.attnum, g.privilege) END
"""

BUCKETS: LiteralString = "SELECT count(*)::int FROM {schema}.outbox_buckets"

SEQUENCE: LiteralString = """
    SELECT s.seqcache::int
      FROM pg_catalog.pg_sequence s
      JOIN pg_catalog.pg_depend d ON d.objid = s.seqrelid AND d.deptype IN ('a', 'i')
      JOIN pg_catalog.pg_class c ON c.oid = d.refobjid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid
     WHERE n.nspname = %(schema)s AND c.relname = 'outbox_events' AND a.attname = 'seq'
"""

OLD: LiteralString = """
    SELECT format('process %%s of %%s on %%s', pid, usename, datname),
           extract(epoch FROM clock_timestamp() - xact_start)::float8
      FROM pg_catalog.pg_stat_activity
     WHERE pid <> pg_backend_pid()
       AND backend_type = 'client backend'
       AND xact_start < clock_timestamp() - %(old)s * interval '1 second'
    UNION ALL
    SELECT format('prepared transaction %%s of %%s on %%s', gid, owner, database),
           extract(epoch FROM clock_timestamp() - prepared)::float8
      FROM pg_catalog.pg_prepared_xacts
     WHERE prepared < clock_timestamp() - %(old)s * interval '1 second'
     ORDER BY 2 DESC
     LIMIT 10
"""

ALL_VISIBLE: LiteralString = "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')"

SLOTS: LiteralString = """
    SELECT slot_name::text,
           active,
           coalesce(pg_wal_lsn_diff(
               CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn()
                    ELSE pg_current_wal_lsn() END,
               restart_lsn), 0)::bigint
      FROM pg_catalog.pg_replication_slots
"""
