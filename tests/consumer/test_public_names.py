"""What `import outboxd` gives, and what it costs."""

import subprocess
import sys

import pytest

import outboxd

FRUGAL = """
import sys
import outboxd
outboxd.Event, outboxd.NewEvent, outboxd.Context, outboxd.Reject, outboxd.Done
heavy = {"psycopg", "boto3", "botocore", "anyio", "prometheus_client"} & set(sys.modules)
sys.exit(", ".join(sorted(heavy)) or 0)
"""


@pytest.mark.parametrize("name", outboxd.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(outboxd, name).__name__ == name
    assert name in dir(outboxd)


def test_an_unknown_name_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Consumer'"):
        outboxd.Consumer  # noqa: B018


def test_the_names_that_a_handler_needs_cost_no_driver_and_no_sdk() -> None:
    path = ":".join(sys.path)
    ended = subprocess.run(
        [sys.executable, "-c", FRUGAL],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
