"""What an operator changes in the outbox: batch by batch, each with its entry in the audit."""

from collections.abc import Sequence
from typing import Any, LiteralString
from uuid import UUID, uuid4

import msgspec

from outboxd.adapters.postgres.asking import Asking
from outboxd.adapters.postgres.outbox_orders import (
    DISCARD,
    EVENTS_OF_RUN,
    FOLLOWERS,
    PRUNABLE,
    PRUNE,
    REQUEUE,
    RUNS,
    SPAN,
)
from outboxd.core.audit import Author, Command, Run
from outboxd.core.outbox import BUCKETS

BATCH = 1_000
"""Events per statement: some 20 ms, in which the relay's marks of the same rows wait."""

PRUNE_BATCH = 5_000

COUNT_CAP = 10_001
"""Where the counting of what waits behind something ends."""


class PruneStep(msgspec.Struct, frozen=True):
    """Where a step of a prune ended, whether it was the last, and how many rows it concerned."""

    last_seq: int
    finished: bool
    rows: int


class Operations:
    """One run of a command. Every batch is a transaction of its own, its audit included: a kill
    leaves nothing half done and nothing unrecorded, and the command can be repeated."""

    def __init__(self, asking: Asking, author: Author) -> None:
        self._asking = asking
        self._author = author
        self.run = uuid4()

    def requeue(self, seqs: Sequence[int]) -> list[int]:
        """Make at most BATCH dead, discarded or stopped events pending; those that now are."""
        return self._changed(REQUEUE, Command.REQUEUE, seqs)

    def discard(self, seqs: Sequence[int]) -> list[int]:
        """Give at most BATCH events up for good; those that now are."""
        return self._changed(DISCARD, Command.DISCARD, seqs, note=self._author.note)

    def span(self) -> tuple[int, int]:
        """The lowest and the highest seq: a prune ends where the outbox ended at its start."""
        ((first, last),) = self._asking.rows(SPAN, {})
        return first, last

    def prune(self, age_seconds: float, after: int, upto: int, *, dry: bool) -> PruneStep:
        """Delete, or only count, what was published or discarded longer ago, one page further."""
        query = PRUNABLE if dry else PRUNE
        parameters = {"age": age_seconds, "after": after, "upto": upto, "limit": PRUNE_BATCH}
        ((last, finished, rows),) = self._asking.rows(query, {**self._entry(), **parameters})
        return PruneStep(last, bool(finished), rows)

    def followers(self, aggregates: Sequence[tuple[str, str, int]], look: int, cap: int) -> int:
        """How many pending events come after these (aggregate type, id, seq), counted up to `cap`,
        among the first `look` of each bucket."""
        types, ids, seqs = (list(each) for each in zip(*aggregates, strict=True))
        total = 0
        for bucket in range(BUCKETS):
            parameters = {"bucket": bucket, "look": look, "cap": cap}
            names = {"types": types, "ids": ids, "seqs": seqs}
            total += self._asking.rows(FOLLOWERS, {**parameters, **names})[0][0]
            if total >= cap:
                return cap
        return total

    def _changed(
        self, query: LiteralString, command: Command, seqs: Sequence[int], **more: object
    ) -> list[int]:
        parameters: dict[str, Any] = {**self._entry(), "command": command.value, "seqs": list(seqs)}
        return [seq for (seq,) in self._asking.rows(query, {**parameters, **more})]

    def _entry(self) -> dict[str, Any]:
        return {
            "operator": self._author.operator,
            "run": self.run,
            "reason": self._author.reason,
            "selection": msgspec.json.encode(self._author.selection).decode(),
        }


def past_runs(asking: Asking, limit: int) -> list[Run]:
    """The last runs of commands that changed something, the newest first."""
    runs = []
    for line in asking.rows(RUNS, {"limit": limit}):
        known = dict(zip(Run.__struct_fields__, line, strict=True))
        runs.append(Run(**{**known, "selection": msgspec.json.decode(known["selection"])}))
    return runs


def events_of(asking: Asking, run: UUID, limit: int) -> list[str]:
    """The ids of the first `limit` events that a run has changed; none of a prune."""
    return [each for (each,) in asking.rows(EVENTS_OF_RUN, {"run": run, "limit": limit})]
