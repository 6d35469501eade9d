"""What an operator reads of the outbox: rows by id and listings by state, step by step."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from outboxd.adapters.postgres.asking import Asking
from outboxd.adapters.postgres.outbox_questions import (
    BUCKET_OF,
    BY_ID,
    BY_INDEXED_ID,
    BY_SEQ,
    DEAD,
    HEAD,
    ID_IS_INDEXED,
    PAYLOAD,
    PENDING,
    PUBLISHED,
    ROUTE,
    SPAN,
)
from outboxd.core.outbox import BUCKETS
from outboxd.core.outbox_filters import UNPUBLISHED, Globs, Selection, State, Target, glob_regex
from outboxd.core.outbox_standing import Row

LOOK = 10_000
"""How many rows one statement looks at, some 30 ms; of pending rows, in each of the buckets."""

LOOKED_AT = 5_000_000
"""How many rows a listing of dead or published events looks at before it gives up."""

IDS_PER_STATEMENT = 100_000

END = 2**63 - 1
"""Behind every `seq`."""


class Listing(msgspec.Struct, frozen=True):
    """Rows, and whether there may be others that were not looked at."""

    rows: list[Row]
    looked_short: bool = False


class OutboxRows:
    """Finds rows without ever writing one, or locking it."""

    def __init__(self, asking: Asking, globs: Globs) -> None:
        self._asking = asking
        self._globs = globs

    def listed(
        self, selection: Selection, limit: int, enough: Callable[[], bool] = lambda: False
    ) -> Listing:
        """The first rows of a state: oldest first, but published ones newest first. Looks at no
        more rows once it is `enough`, which is asked between statements."""
        if selection.state in UNPUBLISHED:
            return self._pending(selection, limit, enough)
        rows: list[Row] = []
        looked = 0
        for page, found in self._pages(selection, limit):
            looked += page
            rows += found
            if len(rows) >= limit:
                return Listing(rows[:limit])
            if page >= LOOK and (looked >= LOOKED_AT or enough()):
                return Listing(rows, looked_short=True)
        return Listing(rows)

    def found(self, targets: Sequence[Target]) -> list[Row]:
        """The rows of these ids and places, in order; each once."""
        seqs = [target for target in targets if isinstance(target, int)]
        ids = [target for target in targets if isinstance(target, UUID)]
        rows = {row.seq: row for row in self._by_seq(seqs)}
        rows |= {row.seq: row for row in self._by_id(ids)}
        return [self._with_head(rows[seq]) for seq in sorted(rows)]

    def content(self, seq: int) -> tuple[str, str] | None:
        """The payload and the headers as JSON texts; None if the row is gone meanwhile."""
        rows = self._asking.rows(PAYLOAD, {"seq": seq})
        return (rows[0][0], rows[0][1]) if rows else None

    def _pending(self, selection: Selection, limit: int, enough: Callable[[], bool]) -> Listing:
        narrow = selection.narrows or selection.state is not State.PENDING
        look = LOOK if narrow else min(limit, LOOK)
        found: list[Row] = []
        before, short = END, False
        buckets = self._buckets(selection)
        for looked, bucket in enumerate(buckets, 1):
            span = {"bucket": bucket, "look": look, "before": before, "limit": limit}
            answer = self._asking.rows(PENDING, {**self._parameters(selection), **span})
            here = [_row(line[2:]) for line in answer if line[2] is not None]
            found = sorted([*found, *here], key=lambda row: row.seq)[:limit]
            if len(found) == limit:  # of the other buckets only older ones are wanted
                before = found[-1].seq
            # When the bucket has `limit` of them, what lies behind was not asked for.
            if narrow and answer[0][0] >= look and len(here) < limit:
                short = True
            if looked < len(buckets) and enough():
                return Listing(found, looked_short=True)
        return Listing(found, looked_short=short)

    def _buckets(self, selection: Selection) -> Sequence[int]:
        if selection.aggregate is None:
            return range(BUCKETS)
        kind, identity = selection.aggregate
        parameters = {"aggregate_type": kind, "aggregate_id": identity}
        return [self._asking.rows(BUCKET_OF, parameters)[0][0]]

    def _pages(self, selection: Selection, limit: int) -> Iterator[tuple[int, list[Row]]]:
        newest_first = selection.state is State.PUBLISHED
        query = PUBLISHED if newest_first else DEAD
        after = END if newest_first else 0
        while True:
            answer = self._asking.rows(
                query,
                {
                    **self._parameters(selection),
                    "after": after,
                    "look": LOOK,
                    "limit": max(1, min(limit, LOOK)),
                },
            )
            rows = [_row(line[2:]) for line in answer if line[2] is not None]
            looked, after = answer[0][:2]
            yield looked, rows
            if looked < LOOK:
                return

    def _parameters(self, selection: Selection) -> Mapping[str, Any]:
        kind, identity = selection.aggregate or (None, None)
        return {
            "type": None if selection.type is None else glob_regex(selection.type),
            "aggregate_type": kind,
            "aggregate_id": identity,
            "older": selection.older_than_seconds,
            "state": selection.state.value,
            "hold": self._globs.hold,
            **self._routes(),
        }

    def _routes(self) -> Mapping[str, Any]:
        return {
            "route_events": self._globs.events,
            "route_aggregates": self._globs.aggregates,
            "route_ordered": self._globs.ordered,
        }

    def _by_seq(self, seqs: Sequence[int]) -> list[Row]:
        return [_row(line) for line in self._asking.rows(BY_SEQ, {"seqs": seqs})] if seqs else []

    def _by_id(self, ids: Sequence[UUID]) -> Iterator[Row]:
        if not ids:
            return
        if self._asking.rows(ID_IS_INDEXED, {})[0][0]:
            yield from map(_row, self._asking.rows(BY_INDEXED_ID, {"ids": ids}))
            return
        ((first, last),) = self._asking.rows(SPAN, {})
        missing = set(ids)
        while missing and last >= first:  # the newest first: they are what people ask for
            span = {"after": last - IDS_PER_STATEMENT, "upto": last, "ids": list(missing)}
            for line in self._asking.rows(BY_ID, span):
                missing.discard(UUID(line[1]))
                yield _row(line)
            last -= IDS_PER_STATEMENT

    def _with_head(self, row: Row) -> Row:
        if row.published_at is not None or row.dead_at is not None:
            return row
        unrouted, alone = self._standing_of(row.event_type, row.aggregate_type)
        row = msgspec.structs.replace(row, unrouted=unrouted, alone=alone)
        kind, identity = row.aggregate
        span = {"aggregate_type": kind, "aggregate_id": identity, "seq": row.seq}
        head = [] if alone else self._asking.rows(HEAD, {**span, **self._routes()})
        if not head:
            return row
        seq, event_type, due = head[0]
        return msgspec.structs.replace(
            row,
            head_seq=seq,
            head_next_attempt_at=due,
            head_unrouted=self._standing_of(event_type, row.aggregate_type)[0],
        )

    def _standing_of(self, event_type: str, aggregate_type: str) -> tuple[bool, bool]:
        """Whether such events are held for want of a route, and whether they are alone."""
        kind = {"event": event_type, "aggregate": aggregate_type}
        route = self._asking.rows(ROUTE, {**kind, **self._routes()})
        if not route:
            return self._globs.hold, False
        return False, not route[0][0]


def _row(line: Sequence[Any]) -> Row:
    names = Row.__struct_fields__
    values = dict(zip(names, line, strict=False))
    return Row(**{**values, "delivered_to": tuple(values["delivered_to"])})
