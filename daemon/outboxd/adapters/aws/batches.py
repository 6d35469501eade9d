"""What SQS and SNS answer to a batch, entry by entry."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from outboxd.adapters.aws.outages import kind_of_code
from outboxd.core.relay_outcomes import Accepted, EntryResult, Faulted, Refused

ACCEPTED = Accepted()


class Failure(TypedDict):
    """BatchResultErrorEntry of either service."""

    Id: str
    Code: str
    Message: NotRequired[str]
    SenderFault: bool


def results_of(
    service: str, entries: int, successful: Sequence[str], failed: Sequence[Failure]
) -> list[EntryResult]:
    """One result for each entry of a call whose entries had their positions as ids."""
    results: list[EntryResult] = [Faulted(f"{service} said nothing about this entry")] * entries
    for place in successful:
        results[int(place)] = ACCEPTED
    for failure in failed:
        code = failure["Code"]
        results[int(failure["Id"])] = failed_entry(
            code, failure.get("Message", ""), permanent=failure["SenderFault"]
        )
    return results


def failed_entry(code: str, message: str, *, permanent: bool) -> Refused | Faulted:
    """What an entry's error means; the code of an outage says nothing of the entry itself."""
    reason = f"{code}: {message}"
    if kind_of_code(code) is not None:
        return Faulted(reason, blameless=True)
    return Refused(reason) if permanent else Faulted(reason)
