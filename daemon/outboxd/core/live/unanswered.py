"""What could not be looked at, told once for each reason."""

from collections.abc import Iterable, Iterator

from outboxd.core.errors import OutageKind
from outboxd.core.live.facts import Unanswered
from outboxd.core.live.finding import Code, Finding

MOST_NAMES = 5


def not_looked_at(subject: str, answers: Iterable[object]) -> Iterator[Finding]:
    """Findings for those of the answers that are none; an outage that hit many questions is one."""
    reasons: dict[str, list[Unanswered]] = {}
    for answer in answers:
        if isinstance(answer, Unanswered):
            # A refusal is about one thing, all else is about the service.
            alone = answer.kind in (OutageKind.DENIED, OutageKind.MISSING, OutageKind.OTHER)
            reasons.setdefault(answer.why if alone else answer.kind, []).append(answer)
    for together in reasons.values():
        first = together[0]
        yield Finding(
            Code.NOT_LOOKED_AT,
            subject,
            f"{first.why}{_others(together[1:])}",
            "nothing is known about this, good or bad",
            _remedy(first.kind),
        )


def _others(others: list[Unanswered]) -> str:
    if not others:
        return ""
    named = ", ".join(each.what for each in others[:MOST_NAMES])
    more = f" and {len(others) - MOST_NAMES} more" if len(others) > MOST_NAMES else ""
    return f"; so not asked either: {named}{more}"


def _remedy(kind: OutageKind) -> str:
    match kind:
        case OutageKind.DENIED:
            return "grant what docs/iam.md and docs/database-roles.md say, or check as another role"
        case OutageKind.CREDENTIALS:
            return "mend the credentials, and check again"
        case OutageKind.MISSING:
            return "create what is missing, and check again"
        case (
            OutageKind.UNREACHABLE
            | OutageKind.TIMEOUT
            | OutageKind.THROTTLED
            | OutageKind.SERVER_FAULT
            | OutageKind.OTHER
        ):
            return "check again when it answers"
