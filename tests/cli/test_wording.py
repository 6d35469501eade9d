"""Counts, durations and times as people read them."""

import pytest

from outboxd.cli.wording import ago, at, counted, iso, lasting, line, shortened

FOREVER = float("inf")


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "no events"), (1, "1 event"), (10, "10 events"), (11, "more than 10 events")],
)
def test_a_count(number: int, words: str) -> None:
    assert counted(number, "event", cap=11) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),
        (0.4, "0 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3_602, "1 h"),
        (7_500, "2 h 5 min"),
        (86_400 * 13 + 3_600 * 22 + 59, "13 d 22 h"),
        (FOREVER, "for ever"),
    ],
)
def test_a_duration(seconds: float, words: str) -> None:
    assert lasting(seconds) == words


def test_a_moment() -> None:
    assert at(1_700_000_000.6) == "2023-11-14 22:13:20"
    assert iso(1_700_000_000.6) == "2023-11-14T22:13:20.600Z"
    assert (at(FOREVER), at(-FOREVER), iso(FOREVER), iso(None)) == ("never", "always", None, None)
    assert (ago(-3), ago(90)) == ("just now", "1 min 30 s ago")


def test_what_a_row_holds_moves_no_cursor() -> None:
    assert line("a\x1b[2J\n  b") == "a?[2J b"
    assert shortened("x" * 300) == "x" * 197 + "..."
