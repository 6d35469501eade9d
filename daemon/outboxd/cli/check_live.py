"""`outboxd check --live`: asks AWS and PostgreSQL, and prints what was found."""

import argparse
from typing import TYPE_CHECKING

from outboxd.cli.arguments import add_json_argument, seconds
from outboxd.cli.parsing import UsageError
from outboxd.cli.wording import numbered
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outboxd.core.live.facts import Facts, Migration
    from outboxd.core.live.finding import Counts, Finding
    from outboxd.core.settings import Settings

PATIENCE_SECONDS = 10.0


def add_live_arguments(parser: argparse.ArgumentParser) -> None:
    """What `--live` takes besides."""
    parser.add_argument(
        "--strict", action="store_true", help="with --live: exit with 1 for warnings too"
    )
    parser.add_argument(
        "--timeout-seconds",
        type=seconds,
        default=None,
        metavar="SECONDS",
        help=f"with --live: how long one question may take (default: {PATIENCE_SECONDS:g})",
    )
    add_json_argument(parser)


def require_live(arguments: argparse.Namespace) -> None:
    """Raises UsageError for arguments that do not go together."""
    if arguments.live and arguments.show:
        raise UsageError("--show prints the settings and nothing else: leave out --live")
    for name in ("json", "strict", "timeout_seconds"):
        if getattr(arguments, name) and not arguments.live:
            raise UsageError(f"--{name.replace('_', '-')} goes with --live")


def check_live(settings: "Settings", arguments: argparse.Namespace) -> int:
    """Ask, print, and say by the exit code whether somebody has to do something."""
    from outboxd.adapters.live.looking import live_facts
    from outboxd.core.live.finding import counts
    from outboxd.core.live_findings import live_findings

    facts = live_facts(settings, arguments.timeout_seconds or PATIENCE_SECONDS)
    findings = live_findings(settings, facts)
    counted = counts(findings)
    if arguments.json:
        _print_json(settings, facts, findings, counted)
    else:
        _print(settings, facts, findings, counted)
    return ExitCode.UNEXPECTED if counted.bad(strict=arguments.strict) else ExitCode.OK


def _print(
    settings: "Settings", facts: "Facts", findings: "tuple[Finding, ...]", counted: "Counts"
) -> None:
    for name, words in _looked_at(settings, facts).items():
        print(f"{name}: {words}")
    for finding in findings:
        print(f"{finding.severity}: {finding.subject}: {finding.found} [{finding.code}]")
        print(f"    then: {finding.consequence}")
        print(f"    do:   {finding.fix}")
    print(
        f"live: {numbered(counted.errors, 'error')}, {numbered(counted.warnings, 'warning')}, "
        f"{numbered(counted.notes, 'note')}"
    )


def _print_json(
    settings: "Settings", facts: "Facts", findings: "tuple[Finding, ...]", counted: "Counts"
) -> None:
    import msgspec

    from outboxd.core.notes import notes

    document = {
        "looked_at": _looked_at(settings, facts),
        "configuration_notes": notes(settings),
        "findings": [
            {"severity": finding.severity, **msgspec.structs.asdict(finding)}
            for finding in findings
        ],
        "counts": counted,
    }
    print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def _looked_at(settings: "Settings", facts: "Facts") -> dict[str, str]:
    """Which account and which database this is about, since the environment may say another than
    is meant."""
    looked_at: dict[str, str] = {}
    if facts.aws is not None:
        looked_at["aws"] = _aws(settings, facts)
    if facts.database is not None:
        looked_at["database"] = _database(settings, facts)
    return looked_at


def _aws(settings: "Settings", facts: "Facts") -> str:
    from outboxd.core.live.facts import Identity

    assert facts.aws is not None
    who = facts.aws.identity
    account = f"account {who.account}" if isinstance(who, Identity) else _account(facts)
    identity = f", as {who.arn}" if isinstance(who, Identity) else ""
    place = settings.aws.region
    endpoint = facts.aws.endpoint
    if endpoint is not None and ".amazonaws.com" not in endpoint:
        place += f" at {_without_user(endpoint)}"
    return f"{account} in {place}{identity}"


def _account(facts: "Facts") -> str:
    """As the ARN of some queue says it."""
    from collections.abc import Mapping

    assert facts.aws is not None
    for queue in facts.aws.queues.values():
        if isinstance(queue, Mapping) and queue.get("QueueArn", "").count(":") == 5:
            return f"account {queue['QueueArn'].split(':')[4]}"
    return "an unknown account"


def _database(settings: "Settings", facts: "Facts") -> str:
    from outboxd.core.live.facts import DatabaseFacts

    assert settings.database is not None
    schema = f"schema {settings.database.schema}"
    if not isinstance(facts.database, DatabaseFacts):
        return f"not reached, {schema}"
    server, migrations = facts.database.server, facts.database.migrations
    version = _version(migrations) if isinstance(migrations, tuple) else ""
    return f"{server.database} of PostgreSQL {server.version}, {schema}{version}, as {server.role}"


def _version(migrations: "Sequence[Migration]") -> str:
    applied = [each.name for each in migrations if each.applied]
    return f" at {applied[-1]}" if applied else " without tables"


def _without_user(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
