"""How the batches of each service look: where their entries are, and how each is answered.

SQS and SNS answer by id, in a list of successes and one of failures; EventBridge by position.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from outboxd.localaws.events import answering as events_answering
from outboxd.localaws.events import pretended as events_pretended
from outboxd.localaws.faults import Target
from outboxd.localaws.http1 import Answer
from outboxd.localaws.query import answering as query_answering
from outboxd.localaws.sns import pretended as sns_pretended
from outboxd.localaws.sqs import answering as sqs_answering
from outboxd.localaws.sqs import pretended as sqs_pretended
from outboxd.localaws.sqs.validation import MAX_BATCH_ENTRIES

Entry = dict[str, Any]
Result = dict[str, Any]

_SUCCESSFUL, _FAILED = "Successful", "Failed"
_INTERNAL_ERROR = "InternalError"


class EntryFailure(NamedTuple):
    """What a client is told about an entry that failed."""

    code: str
    sender_fault: bool
    message: str


class EntryOutcome(NamedTuple):
    """One entry's part of an answer."""

    successful: bool
    content: Entry


class BatchForm(Protocol):
    """One way to ask for several things at once."""

    @property
    def member(self) -> str:
        """The name of the list of entries."""

    def acceptable(self, entries: Sequence[Any]) -> bool:
        """Whether AWS would not refuse these as a whole, which is not for a fault to prevent."""

    def outcomes(self, result: Result, entries: Sequence[Entry]) -> list[EntryOutcome]:
        """What a result says about each of the entries."""

    def result(self, outcomes: Sequence[EntryOutcome]) -> Result:
        """The result that says so."""

    def failed(self, entry: Entry, failure: EntryFailure) -> EntryOutcome: ...

    def pretended(self, target: Target, entry: Entry) -> EntryOutcome:
        """The success of an entry that was not carried out. Raises AwsError if it is no entry."""

    def nothing(self) -> Answer:
        """The answer to an empty batch, which nobody may ask for."""


class Keyed(NamedTuple):
    """By id. SQS leaves empty lists out, SNS does not."""

    member: str
    keeps_empty: bool
    pretend: Callable[[Target, Entry], Entry]
    render: Callable[[None], Answer]

    def acceptable(self, entries: Sequence[Any]) -> bool:
        if not all(isinstance(each, dict) and isinstance(each.get("Id"), str) for each in entries):
            return False
        return 0 < len(entries) == len({each["Id"] for each in entries}) <= MAX_BATCH_ENTRIES

    def outcomes(self, result: Result, entries: Sequence[Entry]) -> list[EntryOutcome]:
        by_id = {each["Id"]: EntryOutcome(True, each) for each in result.get(_SUCCESSFUL, [])}
        by_id.update((each["Id"], EntryOutcome(False, each)) for each in result.get(_FAILED, []))
        return [by_id[entry["Id"]] for entry in entries]

    def result(self, outcomes: Sequence[EntryOutcome]) -> Result:
        successful = [outcome.content for outcome in outcomes if outcome.successful]
        failed = [outcome.content for outcome in outcomes if not outcome.successful]
        result = {_SUCCESSFUL: successful, _FAILED: failed}
        return {name: each for name, each in result.items() if each or self.keeps_empty}

    def failed(self, entry: Entry, failure: EntryFailure) -> EntryOutcome:
        content = {
            "Id": entry["Id"],
            "SenderFault": failure.sender_fault,
            "Code": failure.code,
            "Message": failure.message,
        }
        return EntryOutcome(False, content)

    def pretended(self, target: Target, entry: Entry) -> EntryOutcome:
        return EntryOutcome(True, self.pretend(target, entry))

    def nothing(self) -> Answer:
        return self.render(None)._replace(body=b"{}")


class Positional(NamedTuple):
    """PutEvents."""

    member: str = "Entries"

    def acceptable(self, entries: Sequence[Any]) -> bool:
        return 0 < len(entries) <= MAX_BATCH_ENTRIES and all(
            isinstance(each, dict) for each in entries
        )

    def outcomes(self, result: Result, entries: Sequence[Entry]) -> list[EntryOutcome]:
        told = result.get("Entries", [])
        return [EntryOutcome("ErrorCode" not in each, each) for each in told]

    def result(self, outcomes: Sequence[EntryOutcome]) -> Result:
        failed = sum(not outcome.successful for outcome in outcomes)
        entries = [outcome.content for outcome in outcomes]
        return {"FailedEntryCount": failed, "Entries": entries}

    def failed(self, entry: Entry, failure: EntryFailure) -> EntryOutcome:
        # What the others call InternalError has another name here; whose fault it is, none.
        code = "InternalFailure" if failure.code == _INTERNAL_ERROR else failure.code
        return EntryOutcome(False, {"ErrorCode": code, "ErrorMessage": failure.message})

    def pretended(self, target: Target, entry: Entry) -> EntryOutcome:
        return EntryOutcome(True, events_pretended.entry())

    def nothing(self) -> Answer:
        return events_answering.answer({})


_SQS = Keyed("Entries", False, sqs_pretended.batch_entry, sqs_answering.answer)
_SNS = Keyed("PublishBatchRequestEntries", True, sns_pretended.batch_entry, query_answering.result)
_OF_OTHERS: Mapping[str, BatchForm] = MappingProxyType(
    {"PublishBatch": _SNS, "PutEvents": Positional()}
)


def form_of(operation: str) -> BatchForm:
    """That of a batch operation."""
    return _OF_OTHERS.get(operation, _SQS)
