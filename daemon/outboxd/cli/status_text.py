"""A status document as lines for a terminal."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from outboxd.cli.wording import line
from outboxd.core import figures

MARKS = {"healthy": "✓", "degraded": "!", "unhealthy": "✗", "starting": "…", "stopping": "■"}
_BOLD, _OFF = "\x1b[1m", "\x1b[0m"
_COLOURS = {
    **{"healthy": "\x1b[32m", "degraded": "\x1b[33m", "unhealthy": "\x1b[31m"},
    **{"critical": "\x1b[31m", "warning": "\x1b[33m", "error": "\x1b[31m"},
}
_UPS = {None: figures.UNKNOWN, True: "reached", False: "not reached"}
_BARS = "▁▂▃▄▅▆▇█"
_BAR_COUNT = 15

Row = Sequence[str]


def status_text(status: Mapping[str, Any], *, colour: bool = False) -> str:
    """The whole, ending without a newline; columns are as wide as what is in them."""

    def tint(kind: str, text: str) -> str:
        mark = _COLOURS.get(kind, "")
        return f"{mark}{text}{_OFF}" if colour and mark else text

    def bold(text: str) -> str:
        return f"{_BOLD}{text}{_OFF}" if colour else text

    health = status["health"]
    word = f"{MARKS.get(health, '?')} {line(health).capitalize()}"
    lines = [
        f"{tint(health, word)}  {line(status['summary'])}",
        f"outboxd {line(status['version'])} on {line(status['host'])}, "
        f"up for {figures.seconds(status['up_seconds'])}",
    ]
    for problem in status["problems"]:
        look = f"  ({line(problem['look'])})" if problem["look"] else ""
        level = tint(problem["level"], f"{line(problem['level']):8}")
        lines.append(f"  {level} {line(problem['text'])}{look}")
    for title, rows in _tables(status):
        lines += ["", bold(title), *_aligned(rows)]
    return "\n".join(lines)


def _tables(status: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Row]]]:
    if (outbox := status["outbox"]) is not None:
        yield "Outbox", _outbox(outbox)
    if status["queues"]:
        head = ("queue", "waiting", "", "in flight", "handled", "", "latency 95 %", "retries")
        rows = [_queue(each) for each in status["queues"]]
        yield "Queues (retries: the last 15 minutes)", [(*head, "dead letters"), *rows]
    if status["handlers"]:
        heads = ("handler", "queue", "running", "handled", "fails", "call 95 %")
        rows = [_handler(each) for each in status["handlers"]]
        yield (
            "Handlers (retries, dead letters: the last 15 minutes)",
            [
                (*heads, "retries", "dead letters"),
                *rows,
            ],
        )
    columns = ("process", "state", "up for", "memory", "in work", "restarts", "unplanned")
    yield "Processes", [columns, *(_child(each) for each in status["children"])]
    if status["errors"]:
        yield "Last errors", [_error(each) for each in status["errors"][:10]]


def _outbox(outbox: Mapping[str, Any]) -> Sequence[Row]:
    history = outbox["history"]
    return [
        ("waiting", figures.count(outbox["pending"]), bars(history["pending"])),
        ("oldest", figures.seconds(outbox["oldest_seconds"]), bars(history["oldest_seconds"])),
        (
            "published",
            figures.rate(outbox["published_per_second"]),
            bars(history["published_per_second"]),
        ),
        ("dead", figures.count(outbox["dead"]), ""),
        ("blocked aggregates", figures.count(outbox["blocked_aggregates"]), ""),
        *(
            (
                line(each["name"]),
                figures.rate(each["published_per_second"]),
                _UPS[each["up"]],
            )
            for each in outbox["destinations"]
        ),
    ]


def _queue(queue: Mapping[str, Any]) -> Row:
    marks = [*(["paused"] if queue["paused"] else []), *queue["blocked_by"]]
    return (
        line(f"{queue['name']} ({', '.join(marks)})" if marks else queue["name"]),
        figures.count(queue["visible"]),
        bars(queue["history"]["visible"]),
        figures.count(queue["in_flight"]),
        figures.rate(queue["handled_per_second"]),
        bars(queue["history"]["handled_per_second"]),
        figures.seconds(queue["p95_seconds"]),
        figures.count(queue["recent_retries"]),
        figures.count(queue["dead_letters"]),
    )


def _handler(handler: Mapping[str, Any]) -> Row:
    return (
        line(handler["name"]),
        line(handler["queue"]),
        figures.count(handler["running"]),
        figures.rate(handler["handled_per_second"]),
        figures.share(handler["failed_share"]),
        figures.seconds(handler["p95_seconds"]),
        figures.count(handler["recent_retries"]),
        figures.count(handler["recent_dead_letters"]),
    )


def _child(child: Mapping[str, Any]) -> Row:
    return (
        line(child["name"]),
        line(child["state"]),
        figures.seconds(child["up_seconds"]),
        figures.size(child["rss_bytes"]),
        figures.count(child["in_flight"]),
        figures.count(child["restarts"]),
        figures.count(child["failures"]),
    )


def _error(error: Mapping[str, Any]) -> Row:
    times = f" (x {figures.count(error['count'])})" if error["count"] > 1 else ""
    look = f"  ({line(error['look'])})" if error["look"] else ""
    text = f"{line(error['text'])}{times}{look}"
    return figures.ago(error["seconds_ago"]), line(error["source"]), text


def bars(values: Sequence[float | None]) -> str:
    """The last 15 minutes in 15 signs, the largest of each minute; a gap where nothing is known."""
    size = 6
    full = [*[None] * (_BAR_COUNT * size - len(values)), *values]
    groups = [full[start : start + size] for start in range(0, _BAR_COUNT * size, size)]
    tops = [max((each for each in group if each is not None), default=None) for group in groups]
    most = max((top for top in tops if top is not None), default=0)
    return "".join(
        " " if top is None else _BARS[round(top / most * (len(_BARS) - 1)) if most else 0]
        for top in tops
    ).lstrip()


def _aligned(rows: Sequence[Row]) -> Iterator[str]:
    widths = [max(_width(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        )
        yield f"  {'  '.join(cells)}".rstrip()


def _width(text: str) -> int:
    """Columns of a terminal, where some letters are as wide as two."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)
