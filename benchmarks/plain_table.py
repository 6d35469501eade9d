"""The table of a benchmark whose metrics are its own: a column for each, with the spread."""

from collections.abc import Iterator, Mapping

from benchmarks.figures import Row

SUBJECT_WIDTH = 36
COLUMN_WIDTH = 16


def plain(benchmark: str, rows: Mapping[tuple[str, str], Row]) -> Iterator[str]:
    """A line for each subject; a metric's name may need two lines."""
    subjects = [*dict.fromkeys(subject for subject, _ in rows)]
    metrics = [*dict.fromkeys(metric for _, metric in rows)]
    heads = [_halves(metric) for metric in metrics]
    yield _line("", [first for first, _ in heads])
    yield _line(benchmark, [second for _, second in heads])
    yield _line("-" * (SUBJECT_WIDTH - 2), ["-" * (COLUMN_WIDTH - 2) for _ in metrics])
    for subject in subjects:
        yield _line(subject, [_cell(rows.get((subject, metric))) for metric in metrics])


def _halves(name: str) -> tuple[str, str]:
    """A name that is too wide, broken at the space before its middle; else all below."""
    if len(name) < COLUMN_WIDTH:
        return "", name
    at = name.rfind(" ", 0, COLUMN_WIDTH - 1)
    return name[:at], name[at + 1 :]


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    digits = 2 if row.median < 10 else 1 if row.median < 100 else 0
    spread = f" ({row.spread:,.{digits}f})" if row.spread else ""
    return f"{row.median:,.{digits}f}{spread}"


def _line(subject: str, cells: list[str]) -> str:
    columns = "".join(cell.rjust(COLUMN_WIDTH) for cell in cells)
    return (subject.ljust(SUBJECT_WIDTH) + columns).rstrip()
