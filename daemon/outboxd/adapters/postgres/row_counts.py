"""Counts pending and dead rows up to a cap, in statements that are short however many there are.

One statement for all took 1.3 s on a backlog of five million rows: the planner collects whole
buckets, whose rows are all over the table. In the order of `seq` the first rows of the buckets are
neighbours, so that a page of the table is read once for all 64.
"""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from outboxd.core.outbox import BUCKETS

COUNT_CAP = 100_001
DEAD_CAP = 10_001

PER_STATEMENT = 64 * 160
"""Rows that one statement looks at: some 30 ms, and 100 ms when none is in memory."""

PER_BUCKET = 1_000
"""Above it, the planner may take the wanted part of a bucket for large enough to collect all."""

PENDING: LiteralString = """
    SELECT b.bucket, count(*), max(page.seq)
      FROM unnest(%(buckets)s::smallint[], %(after)s::bigint[]) AS b (bucket, after)
     CROSS JOIN LATERAL (
        SELECT o.seq
          FROM {schema}.outbox_events o
         WHERE (hashtextextended(o.aggregate_type || chr(31) || o.aggregate_id, 0) & 63)
               ::smallint = b.bucket
           AND o.seq > b.after
           AND o.published_at IS NULL
           AND o.dead_at IS NULL
         ORDER BY o.seq
         LIMIT %(each)s
     ) page
     GROUP BY b.bucket
"""

# What an operator has discarded is dead with a next attempt in all eternity, and nobody's concern;
# there may be a million of them before the first that is. What is published after all is neither.
DEAD: LiteralString = """
    SELECT count(*),
           count(*) FILTER (
               WHERE published_at IS NULL AND next_attempt_at IS DISTINCT FROM 'infinity'
           ),
           max(seq)
      FROM (
        SELECT seq, published_at, next_attempt_at
          FROM {schema}.outbox_events
         WHERE dead_at IS NOT NULL
           AND seq > %(after)s
         ORDER BY seq
         LIMIT %(look)s
      ) page
"""


class PendingCount:
    """What to ask next, until all is counted or the cap is reached; whoever has it does the asking.

    A page begins where the one before ended, so a row is counted once at most. Buckets that are at
    their end leave their share of the next page to the others.
    """

    def __init__(self) -> None:
        self.total = 0
        self._after = dict.fromkeys(range(BUCKETS), 0)

    def question(self) -> Mapping[str, Any] | None:
        """Parameters of the next PENDING; None when the total is known."""
        if not self._after or self.total >= COUNT_CAP:
            return None
        return {
            "buckets": list(self._after),
            "after": list(self._after.values()),
            "each": self._each,
        }

    def answered(self, lines: Sequence[tuple[Any, ...]]) -> None:
        """Add what the statement returned."""
        each = self._each
        self._after = {bucket: last for bucket, count, last in lines if count >= each}
        self.total = min(COUNT_CAP, self.total + sum(count for _, count, _ in lines))

    @property
    def _each(self) -> int:
        return min(PER_BUCKET, PER_STATEMENT // len(self._after))


class DeadCount:
    """The same for what was given up and nobody has decided about."""

    def __init__(self) -> None:
        self.total = 0
        self._after: int | None = 0

    def question(self) -> Mapping[str, Any] | None:
        """Parameters of the next DEAD; None when the total is known."""
        if self._after is None or self.total >= DEAD_CAP:
            return None
        return {"after": self._after, "look": PER_STATEMENT}

    def answered(self, lines: Sequence[tuple[Any, ...]]) -> None:
        """Add what the statement returned."""
        ((looked_at, dead, last),) = lines
        self._after = last if looked_at >= PER_STATEMENT else None
        self.total = min(DEAD_CAP, self.total + dead)
