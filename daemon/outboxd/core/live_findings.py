"""From what AWS and PostgreSQL say to what a person should know before a deploy."""

from collections.abc import Iterator

from outboxd.core.live.database import server_findings
from outboxd.core.live.facts import AwsFacts, DatabaseFacts, Facts, Unanswered
from outboxd.core.live.fan_out import fan_out_findings
from outboxd.core.live.finding import Code, Finding, worst_first
from outboxd.core.live.queues import queue_findings
from outboxd.core.live.tables import table_findings
from outboxd.core.live.unanswered import not_looked_at
from outboxd.core.provisioning import wanted_queues
from outboxd.core.provisioning_fan_out import wanted_fan_out
from outboxd.core.settings import Settings

SKEW_SECONDS = 60.0
"""AWS refuses what was signed more than five minutes ago, or ahead."""


def live_findings(settings: Settings, facts: Facts) -> tuple[Finding, ...]:
    """Everything there is to say, the worst first, else in the order of AWS, then PostgreSQL."""
    found = [*_aws(settings, facts.aws), *_database(settings, facts.database)]
    return tuple(sorted(found, key=worst_first))


def _aws(settings: Settings, facts: AwsFacts | None) -> Iterator[Finding]:
    if facts is None:
        return
    yield from not_looked_at(
        "AWS",
        [
            *facts.queues.values(),
            *facts.unprobed,
            *facts.topics.values(),
            *facts.subscriptions.values(),
            *facts.buses.values(),
            *facts.rules.values(),
        ],
    )
    if isinstance(facts.identity, Unanswered):
        yield Finding(
            Code.IDENTITY_UNKNOWN,
            "AWS",
            f"who asks could not be found out: {facts.identity.why}",
            "what was looked at may be another account than is meant",
            "nothing, if this is an emulator",
        )
    if facts.ahead_seconds is not None and abs(facts.ahead_seconds) >= SKEW_SECONDS:
        yield Finding(
            Code.AWS_CLOCK,
            "this machine",
            f"its clock differs from AWS's by {abs(facts.ahead_seconds):.0f} s",
            "from five minutes on AWS refuses every call",
            "keep time by NTP",
        )
    yield from queue_findings(settings, wanted_queues(settings), facts)
    yield from fan_out_findings(wanted_fan_out(settings), facts)
    yield from _untested(settings)


def _untested(settings: Settings) -> Iterator[Finding]:
    """Nothing is received or sent to find out."""
    wanted = wanted_fan_out(settings)
    actions = [
        *(["sqs:ReceiveMessage"] if settings.consumed else []),
        *(["sqs:SendMessage"] if settings.queues else []),
        *(["sns:Publish"] if wanted.topics else []),
        *(["events:PutEvents"] if wanted.buses or wanted.rules else []),
    ]
    if actions:
        yield Finding(
            Code.PERMISSIONS_UNTESTED,
            "AWS",
            f"not tried, since only a message could tell: {', '.join(actions)}",
            "a missing one shows when the daemon runs: as `denied` in the log and in /metrics, "
            "and nothing is lost",
            "compare the role with docs/iam.md",
        )


def _database(settings: Settings, facts: DatabaseFacts | Unanswered | None) -> Iterator[Finding]:
    if facts is None or settings.database is None:
        return
    if isinstance(facts, Unanswered):
        yield from not_looked_at("PostgreSQL", [facts])
        return
    yield from not_looked_at(
        "PostgreSQL",
        [
            facts.usage,
            facts.pooling,
            facts.migrations,
            facts.tables,
            facts.indexes,
            facts.lacking,
            facts.buckets,
            facts.sequence_cache,
            facts.wakes_relays,
            facts.activity,
            facts.slots,
            facts.direct,
        ],
    )
    yield from server_findings(settings, facts)
    yield from table_findings(settings, settings.database.schema, facts)
