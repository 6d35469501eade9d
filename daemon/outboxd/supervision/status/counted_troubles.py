"""What children have counted that should not happen, as lines for people.

The text of an error stays where it happened, in the child's log and in the dead letter; what
reaches the supervisor is that it happened, where, and of which kind.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from outboxd.supervision.status import names
from outboxd.supervision.status.readings import Readings, growth
from outboxd.supervision.status.steps import WANTED_RETRIES
from outboxd.supervision.status.troubles import Weight


class Counted(Struct, frozen=True):
    """So many of a kind, in one step."""

    level: Weight
    source: str
    text: str
    count: int
    look: str = ""


Labels = Mapping[str, str]
Say = Callable[[Labels], tuple[str, str, str]]
"""Source, text, and the command that tells more, from a counter's labels."""


def _letter(labels: Labels) -> tuple[str, str, str]:
    queue, handler = labels["queue"], labels["handler"]
    text = f"dead letter of {handler}: " if handler else "dead letter: "
    return queue, text + labels["reason"].replace("_", " "), f"outboxd dlq list {queue}"


def _retry(labels: Labels) -> tuple[str, str, str]:
    kind = labels["error_type"].replace("_", " ")
    return labels["queue"], f"{labels['handler'] or 'a message'} is tried again: {kind}", ""


def _of_queue(text: str) -> Say:
    return lambda labels: (labels["queue"], text.format_map(labels), "")


def _of_relay(text: str, look: str = "") -> Say:
    return lambda labels: ("relay", text.format_map(labels), look)


_COUNTERS: tuple[tuple[str, Weight, Say], ...] = (
    (names.LETTERS, "error", _letter),
    (names.RETRIES, "warning", _retry),
    (names.DELETE_FAILURES, "warning", _of_queue("a message was not deleted: {error_type}")),
    (names.LOST_LEASES, "warning", _of_queue("a lease ended under a running handler")),
    (names.PURGE_FAILURES, "warning", _of_queue("the inbox could not be purged")),
    (names.USER_METRICS_REFUSED, "warning", _of_queue("a handler's metric is refused: {reason}")),
    (
        names.REFUSED,
        "error",
        _of_relay(
            "{destination} did not take an event: {error_type}",
            "outboxd outbox list --state failing",
        ),
    ),
    (names.OUTAGES, "error", _of_relay("{destination} is not reached: {kind}")),
    (names.DATABASE_FAILURES, "error", _of_relay("the database failed a statement ({doing})")),
    (names.DIED, "error", _of_relay("an event was given up", "outboxd outbox list --state dead")),
    (names.SERIES_DROPPED, "warning", lambda labels: (labels["child"], "metrics left out", "")),
)


def counted_troubles(now: Readings, before: Readings) -> Iterator[Counted]:
    """What has grown between two looks."""
    for name, level, say in _COUNTERS:
        for labels, value in now.items(name):
            known = dict(labels)
            if known.get("error_type") in WANTED_RETRIES:
                continue
            if (grown := growth(value, before.value(name, labels)) or 0) >= 1:
                yield Counted(level, *_parts(say, known, int(grown)))
    for name, label, text in (
        (names.RECEIVES, "result", "receive failed"),
        (names.EXTENSIONS, "result", "an extension of a lease failed"),
    ):
        for labels, value in now.items(name, **{label: "error"}):
            if (grown := growth(value, before.value(name, labels)) or 0) >= 1:
                yield Counted("error", dict(labels)["queue"], text, int(grown))


def _parts(say: Say, labels: Labels, count: int) -> tuple[str, str, int, str]:
    source, text, look = say(labels)
    return source, text, count, look
