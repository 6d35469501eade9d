"""The page's sections and their tables; every cell is markup that is safe already."""

from collections.abc import Sequence


def section(name: str, body: str, note: str) -> str:
    """A card with its heading, and beside that a note."""
    mark = name.lower().replace(" ", "-")
    return (
        f'<section class="card" aria-labelledby="{mark}"><div class="head"><h2 id="{mark}">{name}'
        f"</h2><p>{note}</p></div>{body}</section>\n"
    )


def table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose rows the script leaves as they are, but for the values in their cells."""
    body = "".join(row(heads, cells) for cells in rows)
    return bare_table(name, heads, f'<tbody role="rowgroup">{body}</tbody>')


def bare_table(name: str, heads: Sequence[str], body: str) -> str:
    """One whose body is made elsewhere."""
    # The roles are said, since on a phone the styles make blocks of it, and those have none.
    cells = "".join(f'<th scope="col" role="columnheader">{head}</th>' for head in heads)
    return (
        f'<table role="table" aria-label="{name}"><thead role="rowgroup"><tr role="row">{cells}'
        f"</tr></thead>{body}</table>"
    )


def row(heads: Sequence[str], cells: Sequence[str]) -> str:
    """Its first cell is its heading; on a phone each cell says its column's."""
    first, *others = cells
    told = "".join(
        f'<td role="cell" data-head="{head}">{cell}</td>'
        for head, cell in zip(heads[1:], others, strict=True)
    )
    return (
        f'<tr role="row"><th scope="row" role="rowheader" data-head="{heads[0]}">{first}</th>'
        f"{told}</tr>"
    )
