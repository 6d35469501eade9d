"""Numbers as people read them."""

import pytest

from outboxd.core import figures


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EN DASH}"),
        (0, "0 ms"),
        (0.0343, "34 ms"),
        (0.9996, "1.0 s"),
        (2.14, "2.1 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (7200, "2 h"),
        (90_000, "1 d 1 h"),
    ],
)
def test_durations(value: float | None, text: str) -> None:
    assert figures.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EN DASH}"),
        (-3, "just now"),
        (0.9, "just now"),
        (1.9, "1 s ago"),
        (61, "1 min 1 s ago"),
    ],
)
def test_ages(value: float | None, text: str) -> None:
    assert figures.ago(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0/s"),
        (0.004, "<0.01/s"),
        (0.25, "0.25/s"),
        (8.34, "8.3/s"),
        (1234.5, "1,235/s"),
        (0.125, "0.13/s"),
    ],
)
def test_rates(value: float, text: str) -> None:
    assert figures.rate(value) == text


def test_sizes_counts_and_shares() -> None:
    assert figures.size(12) == "12 B"
    assert figures.size(50 * 1024 * 1024) == "50 MiB"
    assert figures.size(1.26 * 1024**3) == "1.3 GiB"
    assert figures.count(12_345) == "12,345"
    assert [figures.share(each) for each in (0, 0.001, 0.126, 1)] == [
        "0 %",
        "<1 %",
        "13 %",
        "100 %",
    ]


def test_what_is_not_known_is_never_0() -> None:
    forms = (figures.count, figures.rate, figures.seconds, figures.ago, figures.size, figures.share)

    assert {form(None) for form in forms} == {figures.UNKNOWN}
