"""What was found, what would happen, and what to do about it: a closed list of kinds."""

from enum import StrEnum
from typing import assert_never

import msgspec


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """It cannot work like this, loses something, or could not be looked at."""
    WARNING = "warning"
    """It works, until something happens that happens."""
    NOTE = "note"
    """It may be meant like this."""


class Code(StrEnum):
    """The stable name of a finding, for programs; docs/check-live.md explains each."""

    NOT_LOOKED_AT = "not-looked-at"
    NOT_VISIBLE = "not-visible"

    PERMISSION_REFUSED = "permission-refused"
    PERMISSIONS_UNTESTED = "permissions-untested"
    AWS_CLOCK = "aws-clock"
    IDENTITY_UNKNOWN = "identity-unknown"

    QUEUE_MISSING = "queue-missing"
    QUEUE_TYPE = "queue-type"
    QUEUE_DRIFT = "queue-drift"
    QUEUE_DELAY = "queue-delay"
    QUEUE_SIZE = "queue-size"
    QUEUE_THROUGHPUT = "queue-throughput"
    QUEUE_KEY = "queue-key"
    QUEUE_KEY_UNTESTED = "queue-key-untested"
    VISIBILITY_SHORT = "visibility-short"
    RETENTION_SHORT = "retention-short"
    DEAD_LETTER_NONE = "dead-letter-none"
    DEAD_LETTER_ELSEWHERE = "dead-letter-elsewhere"
    DEAD_LETTER_REFUSED = "dead-letter-refused"
    DEAD_LETTER_RETENTION = "dead-letter-retention"
    DEAD_LETTER_HURRY = "dead-letter-hurry"
    RECEIVES_FEW = "receives-few"
    INBOX_SHORT = "inbox-short"
    INBOX_STRETCHED = "inbox-stretched"

    QUEUE_CLOSED = "queue-closed"
    QUEUE_POLICY_UNCLEAR = "queue-policy-unclear"
    TOPIC_MISSING = "topic-missing"
    TOPIC_TYPE = "topic-type"
    SUBSCRIPTION_MISSING = "subscription-missing"
    SUBSCRIPTION_PENDING = "subscription-pending"
    SUBSCRIPTION_DRIFT = "subscription-drift"
    BUS_MISSING = "bus-missing"
    RULE_MISSING = "rule-missing"
    RULE_DISABLED = "rule-disabled"
    RULE_TARGET = "rule-target"
    RULE_DRIFT = "rule-drift"

    SCHEMA_BEHIND = "schema-behind"
    SCHEMA_AHEAD = "schema-ahead"
    TABLE_MISSING = "table-missing"
    TABLE_UNLOGGED = "table-unlogged"
    TABLE_KIND = "table-kind"
    TABLE_ROW_SECURITY = "table-row-security"
    INDEX_MISSING = "index-missing"
    INDEX_INVALID = "index-invalid"
    INDEX_EXTRA = "index-extra"
    BUCKETS_INCOMPLETE = "buckets-incomplete"
    SEQUENCE_CACHE = "sequence-cache"
    GRANT_MISSING = "grant-missing"
    GRANT_PUBLISHING = "grant-publishing"
    AUTOVACUUM_OFF = "autovacuum-off"
    AUTOVACUUM_SETTINGS = "autovacuum-settings"
    DEAD_ROWS = "dead-rows"

    SERVER_OLD = "server-old"
    SERVER_READ_ONLY = "server-read-only"
    SERVER_NOT_DURABLE = "server-not-durable"
    SERVER_ENCODING = "server-encoding"
    ISOLATION = "isolation"
    TIMEOUT_SHORT = "timeout-short"
    DATABASE_CLOCK = "database-clock"
    CONNECTIONS_TOO_FEW = "connections-too-few"
    CONNECTIONS_TIGHT = "connections-tight"
    TRANSACTION_OLD = "transaction-old"
    SLOT_HOLDS_WAL = "slot-holds-wal"
    POOLER = "pooler"
    POOLER_STATEMENT = "pooler-statement"
    WAKE_UP_POOLED = "wake-up-pooled"
    WAKE_UP_DISABLED = "wake-up-disabled"
    DIRECT_ELSEWHERE = "direct-elsewhere"

    @property
    def severity(self) -> Severity:
        """The same for every finding of the kind."""
        if self in _WARNINGS:
            return Severity.WARNING
        return Severity.NOTE if self in _NOTES else Severity.ERROR


_WARNINGS = frozenset(
    {
        Code.PERMISSION_REFUSED,
        Code.AWS_CLOCK,
        Code.QUEUE_DELAY,
        Code.RETENTION_SHORT,
        Code.DEAD_LETTER_ELSEWHERE,
        Code.DEAD_LETTER_HURRY,
        Code.RECEIVES_FEW,
        Code.INBOX_SHORT,
        Code.SUBSCRIPTION_DRIFT,
        Code.RULE_DRIFT,
        Code.TABLE_KIND,
        Code.INDEX_MISSING,
        Code.INDEX_INVALID,
        Code.AUTOVACUUM_OFF,
        Code.AUTOVACUUM_SETTINGS,
        Code.DEAD_ROWS,
        Code.SERVER_OLD,
        Code.SERVER_NOT_DURABLE,
        Code.SERVER_ENCODING,
        Code.ISOLATION,
        Code.TIMEOUT_SHORT,
        Code.DATABASE_CLOCK,
        Code.CONNECTIONS_TIGHT,
        Code.TRANSACTION_OLD,
        Code.SLOT_HOLDS_WAL,
        Code.WAKE_UP_POOLED,
        Code.WAKE_UP_DISABLED,
    }
)

_NOTES = frozenset(
    {
        Code.NOT_VISIBLE,
        Code.PERMISSIONS_UNTESTED,
        Code.IDENTITY_UNKNOWN,
        Code.QUEUE_DRIFT,
        Code.QUEUE_SIZE,
        Code.QUEUE_THROUGHPUT,
        Code.QUEUE_KEY_UNTESTED,
        Code.VISIBILITY_SHORT,
        Code.INBOX_STRETCHED,
        Code.QUEUE_POLICY_UNCLEAR,
        Code.INDEX_EXTRA,
        Code.GRANT_PUBLISHING,
        Code.POOLER,
    }
)


class Finding(msgspec.Struct, frozen=True):
    """One thing that differs from what would be good; each text is a sentence without its stop."""

    code: Code
    subject: str
    """What it is about, such as "queue orders"."""
    found: str
    consequence: str
    """What would happen."""
    fix: str

    @property
    def severity(self) -> Severity:
        return self.code.severity


class Counts(msgspec.Struct, frozen=True):
    """How many there are of each severity."""

    errors: int
    warnings: int
    notes: int

    def bad(self, *, strict: bool) -> bool:
        """Whether somebody has to do something; `strict` counts warnings too."""
        return self.errors > 0 or (strict and self.warnings > 0)


def counts(findings: tuple[Finding, ...]) -> Counts:
    numbers = dict.fromkeys(Severity, 0)
    for finding in findings:
        numbers[finding.severity] += 1
    return Counts(numbers[Severity.ERROR], numbers[Severity.WARNING], numbers[Severity.NOTE])


def worst_first(finding: Finding) -> int:
    """A key for sorting."""
    match finding.severity:
        case Severity.ERROR:
            return 0
        case Severity.WARNING:
            return 1
        case Severity.NOTE:
            return 2
        case _:
            assert_never(finding.severity)
