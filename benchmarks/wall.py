"""`python -m benchmarks.wall`: what a long backlog behind one blocked aggregate costs the others.

Half of the backlog belongs to one aggregate whose first event waits for an operator; it lies before
everything else, in a bucket that some of the others share. Measured is how long the relay takes to
publish so many other events, with the backlog and with none.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg

from benchmarks import subjects
from benchmarks.configurations import RELAY
from benchmarks.errors import BenchmarkError
from benchmarks.filling import fill_outbox, insert_events
from benchmarks.local_sqs import LocalSqs
from benchmarks.place import QUEUE, Grounds, Place, grounds
from benchmarks.workload import AGGREGATE_TYPE, EVENT_TYPE
from outboxd.core.errors import OutboxdError
from outboxd.demo.postgres import EmbeddedPostgresError

POLL_SECONDS = 0.02
LIMIT_SECONDS = 300.0
SETTLE_SECONDS = 15.0
"""How long the relays run on before the rounds begin."""

WALL = """
    INSERT INTO outboxd.outbox_events (event_type, aggregate_type, aggregate_id, payload)
    SELECT %s, %s, 'blocked', '{"number": 1}' FROM generate_series(1, %s)
"""
BLOCK = """
    UPDATE outboxd.outbox_events
       SET next_attempt_at = 'infinity', attempts = 20, last_error = 'refused'
     WHERE seq = (SELECT min(seq) FROM outboxd.outbox_events)
"""


class Yard:
    """A daemon on a place of its own, and the queue that it fills."""

    def __init__(self, place: Place, sqs: LocalSqs, daemon: subjects.Daemon, sent: int) -> None:
        self._place = place
        self._sqs = sqs
        self._daemon = daemon
        self._sent = sent

    def first(self, events: int) -> float:
        """Seconds for the first so many events, from the first message on."""
        self._await(1)
        seconds = self._await(events)
        self._await(self._sent)
        return seconds

    def more(self, events: int) -> float:
        """Seconds for so many events, from their commit on."""
        with psycopg.connect(self._place.dsn, autocommit=True) as connection:
            insert_events(connection, events)
        self._sent += events
        return self._await(self._sent)

    def _await(self, sent: int) -> float:
        began = time.monotonic()
        while self._sqs.depth().total < sent:
            if (words := self._daemon.last_words()) is not None:
                raise BenchmarkError(words)
            if time.monotonic() - began > LIMIT_SECONDS:
                raise BenchmarkError(f"the work was not done after {LIMIT_SECONDS:g} s")
            time.sleep(POLL_SECONDS)
        return time.monotonic() - began


def main() -> int:
    """0 if the backlog costs no more than it may, else 1."""
    options = _parser().parse_args()
    try:
        with grounds() as somewhere:
            return _judge(somewhere, options)
    except (BenchmarkError, OutboxdError, EmbeddedPostgresError) as error:
        _say(f"benchmarks: {error}")
        return 1


def _judge(grounds: Grounds, options: argparse.Namespace) -> int:
    events = options.events
    with ExitStack() as stack:
        empty = stack.enter_context(_yard(grounds, 0, events))
        alone = empty.first(events)
        backlog = stack.enter_context(_yard(grounds, options.rows, events))
        beside = backlog.first(events)
        _say(f"right after the start: {alone:.2f} s, behind the backlog {beside:.2f} s")
        time.sleep(SETTLE_SECONDS)
        ratios = []
        # In turns: what else the machine does comes and goes, and should hit both alike.
        for _ in range(options.rounds):
            alone, beside = empty.more(events), backlog.more(events)
            ratios.append(beside / alone)
            _say(f"{alone:.2f} s, behind the backlog {beside:.2f} s")
    ratio = statistics.median(ratios)
    _say(f"median ratio of {len(ratios)}: {ratio:.2f}")
    return 0 if ratio <= options.most else 1


@contextmanager
def _yard(grounds: Grounds, rows: int, events: int) -> Iterator[Yard]:
    with grounds.place(RELAY) as place, LocalSqs(place.endpoint, QUEUE) as sqs:
        _fill(place, rows, events)
        with subjects.daemon(place.configuration, place.settings) as daemon:
            yield Yard(place, sqs, daemon, rows - rows // 2 if rows else events)


def _fill(place: Place, rows: int, events: int) -> None:
    """The backlog: half of it the wall, then others; or the events alone."""
    if rows:
        with psycopg.connect(place.dsn, autocommit=True) as connection:
            connection.execute(WALL, (EVENT_TYPE, AGGREGATE_TYPE, rows // 2))
            connection.execute(BLOCK)
    fill_outbox(place.dsn, rows - rows // 2 if rows else events)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wall", description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="of the backlog (default: %(default)s)"
    )
    parser.add_argument(
        "--events", type=int, default=10_000, help="that are measured (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=7, help="of both (default: %(default)s)")
    parser.add_argument(
        "--most",
        type=float,
        default=1.3,
        help="ratio of the times, beyond which this fails (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
