"""What is to be reached, and what a run has reached of it."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

import msgspec

from benchmarks import catalogue as c
from benchmarks import figures as f
from benchmarks.figures import Figures, Round
from benchmarks.peers import celery, dramatiq, sqs_consumer, sqs_workers, taskiq
from benchmarks.trials import idling, latency, recovery, relaying, scale

ONE_BY_ONE = (celery.THREADS, celery.PREFORK, dramatiq.DRAMATIQ, taskiq.TASKIQ)
"""Those that handle and delete message by message."""

FLOORS = (c.FLOOR, c.FLOOR_THREADS)


class Target(msgspec.Struct, frozen=True):
    """One target; `wanted` begins with the comparison that `got` has to stand."""

    name: str
    wanted: str
    got: float
    met: bool


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted of a benchmark.

    `of` gives a round's figure from the figures of its subjects, or KeyError if one of them did not
    take part. A `stretch` is reached for, and missing it is no failure.
    """

    name: str
    benchmark: str
    of: Callable[[Mapping[str, Figures]], float]
    least: float | None = None
    most: float | None = None
    stretch: bool = False

    @property
    def wanted(self) -> str:
        return f">= {self.least:g}" if self.least is not None else f"<= {self.most:g}"

    def judge(self, rounds: Sequence[Round]) -> Target | None:
        """None if it was not measured."""
        found: list[float] = []
        for played in rounds:
            subjects = {s: figures for (b, s), figures in played.items() if b == self.benchmark}
            try:
                found.append(self.of(subjects))
            except KeyError:
                continue
        if not found:
            return None
        got = median(found)
        met = got >= self.least if self.least is not None else got <= (self.most or 0.0)
        return Target(self.name, self.wanted, round(got, 3), met)


def _times(
    metric: str, *others: str, ours: str = c.OUTBOXD
) -> Callable[[Mapping[str, Figures]], float]:
    """How many times the best of the others; at least one of them has to be there."""

    def of(subjects: Mapping[str, Figures]) -> float:
        present = [subjects[other][metric] for other in others if other in subjects]
        if not present:
            raise KeyError(others)
        return subjects[ours][metric] / max(present)

    return of


def _figure(
    metric: str, subject: str = c.OUTBOXD, scale: float = 1.0
) -> Callable[[Mapping[str, Figures]], float]:
    return lambda subjects: subjects[subject][metric] * scale


def _beyond(seconds: float, subject: str) -> Callable[[Mapping[str, Figures]], float]:
    """How much longer than one handler takes it was until all were handled again."""
    return lambda subjects: subjects[subject][recovery.ALL_AGAIN] - seconds


def _growth(metrics: Sequence[str], small: str, large: str) -> Callable[..., float]:
    """How many times as much as the small one the large one needs of all of these together."""

    def of(subjects: Mapping[str, Figures]) -> float:
        little, much = (sum(subjects[s][m] for m in metrics) for s in (small, large))
        return much / little

    return of


def _supervisor_share(subjects: Mapping[str, Figures]) -> float:
    figures = subjects[c.OUTBOXD]
    pools = [
        value
        for metric, value in figures.items()
        if metric.startswith(f.PROCESS_CPU.format("consumer:"))
    ]
    return 100 * figures[f.PROCESS_CPU.format("supervisor")] / sum(pools)


GOALS = (
    Goal(
        name="consume: events per CPU-second, x the best that deletes one by one",
        benchmark=c.CONSUME,
        of=_times(f.THRIFT, *(peer.name for peer in ONE_BY_ONE)),
        least=4,
    ),
    Goal(
        name="consume: events per CPU-second, x sqs-workers' batch queue",
        benchmark=c.CONSUME,
        of=_times(f.THRIFT, sqs_workers.BATCH_QUEUE.name),
        least=1,
    ),
    Goal(
        name="consume: events per CPU-second, x floor",
        benchmark=c.CONSUME,
        of=_times(f.THRIFT, *FLOORS),
        least=0.7,
    ),
    Goal(
        name="consume: events per CPU-second, x floor (stretch)",
        benchmark=c.CONSUME,
        of=_times(f.THRIFT, *FLOORS),
        least=1,
        stretch=True,
    ),
    Goal(
        name="consume: events per CPU-second, x Node's sqs-consumer in batches (stretch)",
        benchmark=c.CONSUME,
        of=_times(f.THRIFT, sqs_consumer.BATCHES.name),
        least=1,
        stretch=True,
    ),
    Goal(
        name="consume: supervisor's CPU, % of the pool's",
        benchmark=c.CONSUME,
        of=_supervisor_share,
        most=5,
    ),
    Goal(
        name="consume: supervisor's RSS, MB",
        benchmark=c.CONSUME,
        of=_figure(f.PROCESS_RSS.format("supervisor")),
        most=45,
    ),
    Goal(
        name="consume: SQS calls per 1,000 at concurrency 64",
        benchmark=c.CONSUME,
        of=_figure(f.CALLS, c.WIDE),
        most=230,
    ),
    Goal(
        name="consume with effect: events per CPU-second, x floor",
        benchmark=c.EFFECT,
        of=_times(f.THRIFT, c.FLOOR),
        least=0.7,
    ),
    Goal(
        name="consume with effect: batch, events per CPU-second, x single",
        benchmark=c.EFFECT,
        of=_times(f.THRIFT, c.OUTBOXD, ours=c.BATCH),
        least=4,
    ),
    Goal(
        name="relay, 5 ms away: events per second, x row by row",
        benchmark=c.RELAY_FAR,
        of=_times(f.RATE, c.ROW_BY_ROW),
        least=20,
    ),
    Goal(
        name="relay: events per second, x row by row",
        benchmark=c.RELAY_NEAR,
        of=_times(f.RATE, c.ROW_BY_ROW),
        least=5,
    ),
    Goal(
        name="relay: CPU s per 1,000",
        benchmark=c.RELAY_NEAR,
        of=_figure(f.CPU, scale=0.001),
        most=0.16,
    ),
    Goal(
        name="latency: commit to handler with wake_up, p50 ms",
        benchmark=latency.NAME,
        of=_figure(latency.HALF, latency.WITH_WAKE_UP),
        most=40,
    ),
    Goal(
        name="latency: commit to handler with wake_up, p99 ms",
        benchmark=latency.NAME,
        of=_figure(latency.MOST, latency.WITH_WAKE_UP),
        most=150,
    ),
    Goal(
        name="recovery: s with none in hand, of 16 in flight",
        benchmark=recovery.NAME,
        of=_figure(recovery.UNATTENDED, recovery.OUTBOXD),
        most=5,
    ),
    Goal(
        name="recovery: s until all are handled again, beyond one handler's 0.25 s",
        benchmark=recovery.NAME,
        of=_beyond(recovery.SHORT_SECONDS, recovery.OUTBOXD_SHORT),
        most=5,
    ),
    Goal(
        name="recovery: s until all are handled again, beyond one handler's 3 s",
        benchmark=recovery.NAME,
        of=_beyond(recovery.LONG_SECONDS, recovery.OUTBOXD),
        most=5,
    ),
    Goal(
        name="scale: relay's and PostgreSQL's CPU per event, backlog of 1 M x of 1 k",
        benchmark=scale.BACKLOG,
        of=_growth(
            (relaying.RELAY_CPU, relaying.DATABASE_CPU),
            scale.backlog_name(1_000),
            scale.backlog_name(1_000_000),
        ),
        most=1.2,
    ),
    Goal(
        name="scale: idle CPU with 10 queues, % of one core",
        benchmark=scale.QUEUES,
        of=_figure(idling.IDLE_CPU, scale.queues_name(10)),
        most=2,
    ),
)
"""Those of the benchmarks of this command; the ratios are medians of each round's."""

STRETCHES = frozenset(goal.name for goal in GOALS if goal.stretch)


def judged(rounds: Sequence[Round]) -> list[Target]:
    """Every target that this run has measured."""
    return [target for goal in GOALS if (target := goal.judge(rounds)) is not None]
