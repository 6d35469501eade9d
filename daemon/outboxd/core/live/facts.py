"""What AWS and PostgreSQL say, as they say it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from outboxd.core.errors import OutageKind
from outboxd.core.provisioning_steps import ExistingRule


class Absent(msgspec.Struct, frozen=True):
    """It has been asked for, and there is none."""


class Unanswered(msgspec.Struct, frozen=True):
    """It could not be found out."""

    what: str
    why: str
    kind: OutageKind


Attributes: TypeAlias = Mapping[str, str]
"""By the names of AWS."""


class Identity(msgspec.Struct, frozen=True):
    """Who asks AWS."""

    account: str
    arn: str


class Refusal(msgspec.Struct, frozen=True):
    """An action that this identity may not do on that queue, by its name in SQS."""

    queue: str
    action: str


class AwsFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything by its name in AWS; services that the configuration does not use are not asked."""

    identity: Identity | Unanswered
    endpoint: str | None = None
    """Where SQS was asked."""
    ahead_seconds: float | None = None
    """How far AWS's clock is ahead of this machine's, if that is known."""
    queues: Mapping[str, Attributes | Absent | Unanswered] = {}
    refusals: tuple[Refusal, ...] = ()
    unprobed: tuple[Unanswered, ...] = ()
    topics: Mapping[str, Attributes | Absent | Unanswered] = {}
    subscriptions: Mapping[tuple[str, str], Attributes | Absent | Unanswered] = {}
    buses: Mapping[str, bool | Unanswered] = {}
    rules: Mapping[tuple[str, str], ExistingRule | Absent | Unanswered] = {}


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """The server, the database and the role, as the connection of the daemon sees them."""

    role: str
    database: str
    version: str
    version_number: int
    """As server_version_num: 140005 is 14.5."""
    standby: bool
    settings: Mapping[str, str]
    """Those that a new session of this role has, in the units of pg_settings."""
    role_limit: int
    """Connections that the role may have; -1 is no limit."""
    database_limit: int
    superuser: bool
    others: int
    """Connections of other roles, in all databases."""
    ahead_seconds: float
    """How far its clock is ahead of this machine's."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """One relation, by the letters of pg_class."""

    kind: str
    persistence: str
    hides_rows: bool
    """Row security is enabled, and applies to this role."""
    options: Mapping[str, str]
    live_rows: int
    dead_rows: int


class Index(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    table: str
    valid: bool
    unique: bool


class Grant(msgspec.Struct, frozen=True, order=True):
    """A right on a table, or on one of its columns."""

    table: str
    privilege: str
    column: str | None = None


class OldTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """Open for so long; what it does is not looked at, for it may hold personal data."""

    who: str
    age_seconds: float


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """Old transactions; without `all_visible` only those of this role."""

    old: tuple[OldTransaction, ...]
    all_visible: bool


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    active: bool
    held_bytes: int


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    applied: bool
    unknown: bool


class Pooling(StrEnum):
    """What is between us and the server."""

    NONE = "none"
    SESSION = "session"
    """A pooler that keeps a server connection for a client, as far as could be seen."""
    TRANSACTION = "transaction"
    STATEMENT = "statement"


class Direct(msgspec.Struct, frozen=True, kw_only=True):
    """What is at the other end of direct_url."""

    same_database: bool
    pooling: Pooling


class DatabaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Tables, indexes and grants are those of the configured schema."""

    server: Server
    usage: bool | Unanswered | None
    """Whether the role may use the schema; None if there is none."""
    pooling: Pooling | Unanswered
    migrations: tuple[Migration, ...] | Unanswered
    tables: Mapping[str, Table] | Unanswered
    indexes: tuple[Index, ...] | Unanswered
    lacking: frozenset[Grant] | Unanswered
    """Of the grants that were asked for; those on tables that there are not are not among them."""
    buckets: int | Unanswered | None
    """Rows of outbox_buckets; None if they may not be read."""
    sequence_cache: int | Unanswered | None
    wakes_relays: bool | Unanswered | None
    """Whether the trigger of wake-ups is enabled."""
    activity: Activity | Unanswered
    slots: tuple[Slot, ...] | Unanswered
    direct: Direct | Unanswered | None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """None: the configuration has no use for it."""

    aws: AwsFacts | None
    database: DatabaseFacts | Unanswered | None
