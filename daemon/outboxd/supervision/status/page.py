"""The status page: one document without anything from elsewhere, readable without a script."""

import base64
import hashlib
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from outboxd.core import figures
from outboxd.supervision.status.model import Status
from outboxd.supervision.status.parts import shown, spark
from outboxd.supervision.status.problems import FAILED_SHARE
from outboxd.supervision.status.tables import bare_table, row, section, table

_HERE = Path(__file__).parent
STYLE = (_HERE / "page.css").read_text(encoding="utf-8")
SCRIPT = (_HERE / "page.js").read_text(encoding="utf-8")

Document = Mapping[str, Any]

WORDS = {
    "healthy": "Healthy",
    "degraded": "Degraded",
    "unhealthy": "Unhealthy",
    "starting": "Starting",
    "stopping": "Stopping",
}

_ICONS = {
    "healthy": "M11 21l6 6 12-13",
    "degraded": "M20 11v12M20 28v.5",
    "unhealthy": "M13 13l14 14M27 13L13 27",
    "starting": "M12 20h.5M20 20h.5M28 20h.5",
    "stopping": "M14 14h12v12h-12z",
    "lost": "M15 16a5 5 0 1 1 7.5 4.5q-2.5 1.5-2.5 4M20 29.5v.5",
}


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Nothing that got into a text can run or load anything, or be framed."""


def page(status: Status) -> str:
    """The whole page. Every text in it is escaped, whoever it is from."""
    document: Document = msgspec.to_builtins(status)
    word = WORDS[status.health]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{word} - outboxd on {escape(status.host)}</title>\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        '<noscript><meta http-equiv="refresh" content="10"></noscript>\n'
        f"<style>{STYLE}</style>\n</head>\n"
        f'<body data-health="{status.health}" data-shape="{escape(shape(document))}">\n'
        f"{_header(document)}<main>\n{_tiles(document)}{_outbox(document)}{_queues(document)}"
        f"{_errors(document)}{_handlers(document)}{_children(document)}</main>\n{_footer()}"
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def shape(document: Document) -> str:
    """What the page has places for; when that changes the script loads the page anew."""
    outbox = document["outbox"]
    return "|".join(
        [
            *(child["name"] for child in document["children"]),
            *(queue["name"] for queue in document["queues"]),
            *(f"{each['queue']} {each['name']}" for each in document["handlers"]),
            *(each["name"] for each in (outbox["destinations"] if outbox else ())),
            "outbox" if outbox else "",
        ]
    )


def _header(document: Document) -> str:
    icons = "".join(
        f'<svg class="icon {name}" viewBox="0 0 40 40" aria-hidden="true">'
        f'<circle cx="20" cy="20" r="18"/><path d="{path}"/></svg>'
        for name, path in _ICONS.items()
    )
    return (
        '<header>\n<p class="where"><strong>outboxd</strong> '
        f"{shown(document, 'version', 'text')} on {shown(document, 'host', 'text')}, "
        f"up for {shown(document, 'up_seconds', 'seconds')}</p>\n"
        f'<div class="verdict">{icons}<div role="status" aria-live="polite" id="state">'
        f'<h1 id="word">{WORDS[document["health"]]}</h1>'
        f'<p id="summary">{escape(document["summary"])}</p></div></div>\n'
        f'<ul id="problems">{_problems(document)}</ul>\n</header>\n'
    )


def _problems(document: Document) -> str:
    return "".join(
        f'<li class="{each["level"]}"><span class="level">{each["level"]}</span> '
        f"<span>{escape(each['text'])}{_look(each)}</span></li>"
        for each in document["problems"]
    )


def _look(each: Mapping[str, Any]) -> str:
    return f" <code>{escape(each['look'])}</code>" if each["look"] else ""


def _tiles(document: Document) -> str:
    tiles = []
    if document["outbox"] is not None:
        oldest = shown(document, "outbox.oldest_seconds", "seconds")
        tiles.append(_tile(document, "In the outbox", "outbox.pending", f"oldest: {oldest}"))
    if document["queues"]:
        in_flight = shown(document, "totals.in_flight", "count")
        retries = shown(document, "totals.recent_retries", "count")
        new = shown(document, "totals.recent_dead_letters", "count")
        tiles += [
            _tile(document, "In the queues", "totals.visible", f"and {in_flight} in flight"),
            _tile(
                document,
                "Handled",
                "totals.handled_per_second",
                f"{retries} retries in 15 min",
                "rate",
            ),
            _tile(document, "Dead letters", "totals.dead_letters", f"{new} new in 15 min", hot=1),
        ]
    failures = _tile(document, "Process failures", "totals.failures", "since the start", hot=1)
    return f'<section class="tiles" aria-label="Key figures">{"".join(tiles)}{failures}</section>\n'


def _tile(
    document: Document,
    name: str,
    path: str,
    more: str,
    form: str = "count",
    *,
    hot: float | None = None,
) -> str:
    return (
        f'<div class="tile"><h2>{name}</h2>'
        f'<p class="figure">{shown(document, path, form, hot=hot)}</p><p>{more}</p></div>'
    )


def _outbox(document: Document) -> str:
    if document["outbox"] is None:
        return ""
    facts = [
        ("Waiting", "outbox.pending", "count", "outbox.history.pending"),
        ("Oldest", "outbox.oldest_seconds", "seconds", "outbox.history.oldest_seconds"),
        (
            "Published",
            "outbox.published_per_second",
            "rate",
            "outbox.history.published_per_second",
        ),
    ]
    lines = [
        (name, f"{shown(document, path, form)}{spark(document, history, form, name)}")
        for name, path, form, history in facts
    ]
    lines += [
        ("Until published, 95 %", shown(document, "outbox.publish_p95_seconds", "seconds")),
        ("Refused in 15 min", shown(document, "outbox.recent_failures", "count", hot=1)),
        ("Dead", shown(document, "outbox.dead", "count", hot=1)),
        ("Blocked aggregates", shown(document, "outbox.blocked_aggregates", "count", hot=1)),
    ]
    described = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in lines)
    counted = shown(document, "outbox.counted_seconds_ago", "ago")
    rows = [
        [
            escape(each["name"]),
            _state(document, f"outbox.destinations.{place}.up", "up"),
            shown(document, f"outbox.destinations.{place}.published_per_second", "rate"),
        ]
        for place, each in enumerate(document["outbox"]["destinations"])
    ]
    return section(
        "Outbox",
        f"<dl>{described}</dl>"
        + table("Destinations", ("Destination", "State", "Published"), rows),
        f"counted {counted}",
    )


def _queues(document: Document) -> str:
    if not document["queues"]:
        return ""
    heads = (
        *("Queue", "Waiting", "In flight", "Handled"),
        *("Latency, 95 %", "Retries, 15 min", "Dead letters"),
    )
    rows = []
    for place, queue in enumerate(document["queues"]):
        at, name = f"queues.{place}", queue["name"]
        marks = [*(["paused"] if queue["paused"] else []), *queue["blocked_by"]]
        rows.append(
            [
                f'{escape(name)} <span class="marks" data-marks="{at}">'
                f"{escape(', '.join(marks))}</span>",
                shown(document, f"{at}.visible", "count")
                + spark(document, f"{at}.history.visible", "count", f"{name} waiting"),
                f"{shown(document, f'{at}.in_flight', 'count')}",
                shown(document, f"{at}.handled_per_second", "rate")
                + spark(document, f"{at}.history.handled_per_second", "rate", f"{name} handled"),
                shown(document, f"{at}.p95_seconds", "seconds")
                + spark(document, f"{at}.history.p95_seconds", "seconds", f"{name} latency"),
                shown(document, f"{at}.recent_retries", "count"),
                f"{shown(document, f'{at}.dead_letters', 'count', hot=1)}"
                f"<small>{shown(document, f'{at}.recent_dead_letters', 'count')} new</small>",
            ]
        )
    return section("Queues", table("Queues", heads, rows), "latency: from event to effect")


def _handlers(document: Document) -> str:
    if not document["handlers"]:
        return ""
    heads = (
        *("Handler", "Queue", "Running", "Handled", "Fails"),
        *("Call, 95 %", "Retries, 15 min", "Dead, 15 min"),
    )
    rows = []
    for place, handler in enumerate(document["handlers"]):
        at = f"handlers.{place}"
        rows.append(
            [
                escape(handler["name"]),
                escape(handler["queue"]),
                shown(document, f"{at}.running", "count"),
                shown(document, f"{at}.handled_per_second", "rate"),
                shown(document, f"{at}.failed_share", "share", hot=FAILED_SHARE),
                shown(document, f"{at}.p95_seconds", "seconds"),
                shown(document, f"{at}.recent_retries", "count"),
                shown(document, f"{at}.recent_dead_letters", "count", hot=1),
            ]
        )
    return section(
        "Handlers", table("Handlers", heads, rows), "rates: the last minute; dead: dead letters"
    )


def _state(document: Document, path: str, form: str) -> str:
    return f'<span class="state">{shown(document, path, form)}</span>'


def _children(document: Document) -> str:
    heads = ("Process", "State", "Up for", "Memory", "In work", "Restarts", "Last sign of life")
    rows = []
    for place, child in enumerate(document["children"]):
        at = f"children.{place}"
        rows.append(
            [
                escape(child["name"]),
                _state(document, f"{at}.state", "text"),
                shown(document, f"{at}.up_seconds", "seconds"),
                shown(document, f"{at}.rss_bytes", "size"),
                shown(document, f"{at}.in_flight", "count"),
                f"{shown(document, f'{at}.restarts', 'count')}"
                f"<small>{shown(document, f'{at}.failures', 'count', hot=1)} unplanned</small>",
                shown(document, f"{at}.heartbeat_age_seconds", "ago"),
            ]
        )
    return section("Processes", table("Processes", heads, rows), "children of the supervisor")


def _errors(document: Document) -> str:
    heads = ("Last", "Where", "What", "Times")
    body = "".join(
        row(
            heads,
            [
                escape(figures.ago(each["seconds_ago"])),
                escape(each["source"]),
                f'<span class="{each["level"]}">{escape(each["text"])}</span>{_look(each)}',
                escape(figures.count(each["count"])),
            ],
        )
        for each in document["errors"]
    )
    errors = bare_table("Last errors", heads, f'<tbody role="rowgroup" id="errors">{body}</tbody>')
    nothing = '<p id="no-errors">Nothing went wrong.</p>'
    return section(
        "Last errors", nothing + errors, "their texts are in the log and in the dead letters"
    )


def _footer() -> str:
    return (
        '<footer><nav aria-label="The same for programs"><a href="/status.json">/status.json</a> '
        '<a href="/metrics">/metrics</a> <a href="/healthz?verbose">/healthz</a> '
        '<a href="/readyz?verbose">/readyz</a></nav></footer>\n'
    )
