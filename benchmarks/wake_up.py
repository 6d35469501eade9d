"""`python -m benchmarks.wake_up`: what wake-ups cost producers, and what they bring.

Producers are loops inside the server (`DO ... COMMIT`), so that no client's speed is measured.
"""

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.configurations import RELAY
from benchmarks.local_sqs import LocalSqs
from benchmarks.place import QUEUE, Grounds, Place, grounds
from outboxd.demo.supervisor import supervising

TRIGGER = "ALTER TABLE outboxd.outbox_events {} TRIGGER outbox_events_wake_sleepers"

PRODUCE = """
DO $$
DECLARE
    ends timestamptz := clock_timestamp() + {seconds} * interval '1 second';
    done bigint := 0;
BEGIN
    WHILE clock_timestamp() < ends LOOP
        INSERT INTO outboxd.outbox_events (event_type, aggregate_type, aggregate_id, payload)
        VALUES ('benchmark.measured', 'benchmark', '{aggregate}', '1');
        COMMIT;
        done := done + 1;
    END LOOP;
    INSERT INTO public.committed VALUES (done);
END;
$$
"""

INSERT = """
    INSERT INTO outboxd.outbox_events (event_type, aggregate_type, aggregate_id, payload)
    VALUES ('benchmark.measured', 'benchmark', 'one', '1')
"""


def main() -> int:
    """Measure everything, and print a table of each kind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wake_up", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run (default: 3)")
    parser.add_argument("--rounds", type=int, default=3, help="of each run (default: 3)")
    options = parser.parse_args()
    with grounds() as somewhere:
        _commits(somewhere, options.seconds, options.rounds)
        for wake_up in (False, True):
            _latency(somewhere, wake_up=wake_up)
    return 0


def _commits(somewhere: Grounds, seconds: float, rounds: int) -> None:
    kinds: dict[str, Callable[[Place], Any]] = {
        "trigger disabled": lambda place: _table(place, enabled=False, sleeper=False),
        "enabled, nobody asleep": lambda place: _table(place, enabled=True, sleeper=False),
        "enabled, always a sleeper": lambda place: _table(place, enabled=True, sleeper=True),
        "busy relay, wake_up = false": lambda place: _relay(place, wake_up=False),
        "busy relay, wake_up = true": lambda place: _relay(place, wake_up=True),
    }
    print(f"{'commits per second':30}" + "".join(f"{n:>10}" for n in (1, 8, 64)))
    rates: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for kind, prepared in kinds.items():
            for writers in (1, 8, 64):
                with somewhere.place(RELAY) as place, prepared(place):
                    rate = _rate(place.dsn, writers, seconds)
                rates.setdefault((kind, writers), []).append(rate)
                _say(f"{kind}, {writers}: {rate:.0f}")
    for kind in kinds:
        medians = [statistics.median(rates[kind, writers]) for writers in (1, 8, 64)]
        print(f"{kind:30}" + "".join(f"{rate:>10,.0f}" for rate in medians))


@contextmanager
def _table(place: Place, *, enabled: bool, sleeper: bool) -> Iterator[None]:
    with ExitStack() as stack:
        connection = stack.enter_context(closing(psycopg.connect(place.dsn, autocommit=True)))
        connection.execute(TRIGGER.format("ENABLE" if enabled else "DISABLE").encode())
        if sleeper:
            connection.execute("LISTEN outboxd_outboxd")
            connection.execute(
                "INSERT INTO outboxd.outbox_sleepers VALUES (gen_random_uuid(), 'infinity')"
            )
        yield


@contextmanager
def _relay(place: Place, *, wake_up: bool) -> Iterator[None]:
    with closing(psycopg.connect(place.dsn, autocommit=True)) as connection:
        connection.execute(TRIGGER.format("ENABLE" if wake_up else "DISABLE").encode())
    settings = place.configuration.read_text().replace(
        "[[relay.routes]]", f"[relay]\nwake_up = {str(wake_up).lower()}\n[[relay.routes]]"
    )
    configuration = place.configuration.with_name(f"{place.configuration.stem}-relay.toml")
    configuration.write_text(settings)
    log = Path(f"{configuration}.log")
    with supervising(configuration, place.settings, log) as daemon:
        daemon.await_ready(lambda: False)
        yield


def _rate(dsn: str, writers: int, seconds: float) -> float:
    with closing(psycopg.connect(dsn, autocommit=True)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS public.committed (n bigint)")

        def produce(number: int) -> None:
            with closing(psycopg.connect(dsn, autocommit=True)) as producer:
                statement = PRODUCE.format(seconds=seconds, aggregate=number)
                producer.execute(statement.encode())

        threads = [threading.Thread(target=produce, args=(n,)) for n in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ((done,),) = connection.execute("SELECT sum(n) FROM public.committed").fetchall()
    return float(done) / seconds


def _latency(somewhere: Grounds, *, wake_up: bool) -> None:
    """From a commit until the event is in the queue, an event every two seconds or so; then what
    an idle relay asks of the database."""
    with somewhere.place(RELAY) as place, _relay(place, wake_up=wake_up):
        sqs = LocalSqs(place.endpoint, QUEUE)
        with closing(psycopg.connect(place.dsn, autocommit=True)) as connection:
            delays = []
            for number in range(20):
                # Not in step with the relay's own rhythm.
                time.sleep(2.0 + number * 0.037)
                began = time.perf_counter()
                connection.execute(INSERT)
                while sqs.depth().total <= number:
                    time.sleep(0.0005)
                delays.append(time.perf_counter() - began)
            time.sleep(5)
            before = _transactions(connection)
            time.sleep(30)
            transactions = (_transactions(connection) - before) / 30
    delays.sort()
    print(
        f"wake_up = {str(wake_up).lower()}: commit to queue p50 {delays[10] * 1000:.1f} ms, "
        f"longest of 20 {delays[-1] * 1000:.1f} ms; "
        f"idle: {transactions:.1f} transactions a second"
    )


def _transactions(connection: psycopg.Connection[Any]) -> int:
    """Of the database, so far; each statement of the daemon is one."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    ((count,),) = connection.execute(
        "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    ).fetchall()
    return int(count)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
