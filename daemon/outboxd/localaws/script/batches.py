"""Faults of single entries: a batch is taken apart, and its answer put together again."""

from typing import Any, assert_never

import msgspec

from outboxd.localaws.exchange import Hangup, Outcome
from outboxd.localaws.faults import Proceed, Target
from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.script.choosing import Batch
from outboxd.localaws.script.kinds import FailEntries, StaleReceipt, Swallow
from outboxd.localaws.script.refusals import stale
from outboxd.localaws.sqs import pretended
from outboxd.localaws.sqs.answering import answer
from outboxd.localaws.sqs.operations.batches import failed_entry
from outboxd.localaws.sqs.responses import BatchResult, Failed

Result = dict[str, list[dict[str, Any]]]

_SUCCESSFUL, _FAILED = "Successful", "Failed"


async def split(
    kind: Swallow | StaleReceipt | FailEntries,
    target: Target,
    batch: Batch,
    request: Request,
    proceed: Proceed,
) -> Outcome:
    """Carry out what the fault leaves, and answer with that and what the fault says."""
    chosen = [batch.entries[position] for position in batch.chosen]
    carried_out = await _carry_out(_left(kind, batch), batch, request, proceed)
    if isinstance(carried_out, Hangup) or carried_out.status != 200:
        return carried_out
    result: Result = msgspec.json.decode(carried_out.body)
    for entry in chosen:
        _say(kind, target, entry, result)
    body = msgspec.json.encode(_in_order(result, batch))
    return carried_out._replace(body=body)


def _left(kind: Swallow | StaleReceipt | FailEntries, batch: Batch) -> list[dict[str, Any]]:
    match kind:
        case FailEntries(when="after"):
            return batch.entries
        case _:
            chosen = frozenset(batch.chosen)
            return [e for position, e in enumerate(batch.entries) if position not in chosen]


async def _carry_out(
    entries: list[dict[str, Any]], batch: Batch, request: Request, proceed: Proceed
) -> Answer | Hangup:
    if not entries:
        # An empty batch would be refused.
        return answer(BatchResult())
    body = msgspec.json.encode({**batch.content, "Entries": entries})
    return await proceed(request._replace(body=body))


def _say(
    kind: Swallow | StaleReceipt | FailEntries,
    target: Target,
    entry: dict[str, Any],
    result: Result,
) -> None:
    """Enter what the client is told about a chosen entry."""
    match kind:
        case Swallow():
            result.setdefault(_SUCCESSFUL, []).append(pretended.batch_entry(target, entry))
            return
        case StaleReceipt():
            handle = str(entry.get("ReceiptHandle", ""))
            failed = failed_entry(entry["Id"], stale(kind, handle))
        case FailEntries(code=code, sender_fault=sender_fault, message=message):
            failed = Failed(entry["Id"], sender_fault, code, message)
            # Carried out all the same if it was to fail afterwards.
            done = result.get(_SUCCESSFUL, [])
            result[_SUCCESSFUL] = [each for each in done if each["Id"] != entry["Id"]]
            refused = result.get(_FAILED, [])
            result[_FAILED] = [each for each in refused if each["Id"] != entry["Id"]]
        case _:
            assert_never(kind)
    result.setdefault(_FAILED, []).append(msgspec.to_builtins(failed))


def _in_order(result: Result, batch: Batch) -> Result:
    """Each list in the order of the request, and none that is empty."""
    positions = {entry["Id"]: position for position, entry in enumerate(batch.entries)}
    return {
        name: sorted(entries, key=lambda entry: positions[entry["Id"]])
        for name, entries in result.items()
        if entries
    }
