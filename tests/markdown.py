"""What the pages that are made from code have in common: a table in Markdown."""

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are Markdown themselves; a `|` in one does not end it."""
    rule = "|" + "---|" * len(columns)
    return "".join(f"{line}\n" for line in (_row(columns), rule, *map(_row, rows)))


def _row(cells: Sequence[str]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"
