"""What `outboxd demo` accepts, and how long it waits."""

import pytest

from outboxd.cli.main import main
from outboxd.demo.options import DemoOptions


@pytest.mark.parametrize(
    "arguments",
    [
        ["--orders", "0"],
        ["--orders", "many"],
        ["--rate", "0"],
        ["--rate", "nan"],
        ["--kill-every", "-1"],
        ["--timeout", "inf"],
        ["--port", "70000"],
    ],
)
def test_a_value_that_makes_no_sense_is_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *arguments]) == 2
    assert arguments[0] in capsys.readouterr().err


def test_a_given_timeout_is_the_timeout() -> None:
    assert DemoOptions(orders=10_000, timeout_seconds=5).deadline_seconds == 5


def test_a_run_has_a_minute_at_least_and_more_for_many_orders_or_kills() -> None:
    few, many = DemoOptions(orders=10), DemoOptions(orders=10_000)
    assert few.deadline_seconds == 60
    assert many.deadline_seconds > 10_000 / many.rate
    assert DemoOptions(orders=10, kill_every_seconds=1).deadline_seconds == 120
