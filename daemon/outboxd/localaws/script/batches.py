"""Faults of single entries: a batch is taken apart, and its answer put together again."""

from typing import assert_never

import msgspec

from outboxd.localaws.exchange import Hangup, Outcome
from outboxd.localaws.faults import Proceed, Target
from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.script.choosing import Batch
from outboxd.localaws.script.forms import EntryFailure, EntryOutcome
from outboxd.localaws.script.kinds import FailEntries, StaleReceipt, Swallow
from outboxd.localaws.script.refusals import stale

Kind = Swallow | StaleReceipt | FailEntries


async def split(
    kind: Kind, target: Target, batch: Batch, request: Request, proceed: Proceed
) -> Outcome:
    """Carry out what the fault leaves, and answer with that and what the fault says."""
    left = _left(kind, batch)
    carried_out = await _carry_out(left, batch, request, proceed)
    if isinstance(carried_out, Hangup) or carried_out.status != 200:
        return carried_out
    said = batch.form.outcomes(
        msgspec.json.decode(carried_out.body), [batch.entries[position] for position in left]
    )
    outcomes = dict(zip(left, said, strict=True))
    for position in batch.chosen:
        # Carried out all the same if it was to fail afterwards.
        outcomes[position] = _said(kind, target, batch, position)
    result = batch.form.result([outcomes[position] for position in sorted(outcomes)])
    return carried_out._replace(body=msgspec.json.encode(result))


def _left(kind: Kind, batch: Batch) -> list[int]:
    """The positions of the entries that are carried out."""
    match kind:
        case FailEntries(when="after"):
            return list(range(len(batch.entries)))
        case _:
            chosen = frozenset(batch.chosen)
            return [position for position in range(len(batch.entries)) if position not in chosen]


async def _carry_out(
    left: list[int], batch: Batch, request: Request, proceed: Proceed
) -> Answer | Hangup:
    if not left:
        # An empty batch would be refused.
        return batch.form.nothing()
    entries = [batch.entries[position] for position in left]
    body = msgspec.json.encode({**batch.content, batch.form.member: entries})
    return await proceed(request._replace(body=body))


def _said(kind: Kind, target: Target, batch: Batch, position: int) -> EntryOutcome:
    """What the client is told about a chosen entry."""
    entry = batch.entries[position]
    match kind:
        case Swallow():
            return batch.form.pretended(target, entry)
        case StaleReceipt():
            refusal = stale(kind, str(entry.get("ReceiptHandle", "")))
            failure = EntryFailure(refusal.code, refusal.sender_fault, refusal.message)
        case FailEntries(code=code, sender_fault=sender_fault, message=message):
            failure = EntryFailure(code, sender_fault, message)
        case _:
            assert_never(kind)
    return batch.form.failed(entry, failure)
