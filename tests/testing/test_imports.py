"""What importing outboxd.testing brings along."""

import subprocess
import sys

import pytest

import outboxd.testing

PROGRAM = """
import sys
import {module}
{use}
print(*sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


def loaded(module: str, use: str = "") -> set[str]:
    program = PROGRAM.format(module=module, use=use)
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(answer.stdout.split())


def test_a_local_aws_needs_neither_a_database_nor_the_aws_sdk_nor_pytest() -> None:
    use = "outboxd.testing.local_aws, outboxd.testing.FaultScript"

    assert not loaded("outboxd.testing", use) & {"boto3", "botocore", "psycopg", "pytest"}


def test_running_a_handler_needs_no_aws_sdk_and_no_pytest() -> None:
    assert not loaded("outboxd.testing", "outboxd.testing.run") & {"boto3", "botocore", "pytest"}


@pytest.mark.parametrize("name", outboxd.testing.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(outboxd.testing, name).__name__ == name
    assert name in dir(outboxd.testing)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"'outboxd\.testing' has no attribute 'nothing'"):
        _ = outboxd.testing.nothing
