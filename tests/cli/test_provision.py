"""Queues come to be as the configuration says, once, and never lose messages unasked."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from outboxd.core.exit_codes import ExitCode
from tests.cli.conftest import Cli

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

CONFIGURATION = """
[aws]
endpoint_url = "{endpoint}"
[queues.orders]
{settings}
[[queues.orders.handlers]]
event = "*"
handler = "shop:ship"
name = "ship"
inbox = "off"
"""

Configure = Callable[..., None]


@pytest.fixture
def configure(folder: Path, aws_endpoint: str) -> Configure:
    def write(settings: str = "", endpoint: str = aws_endpoint) -> None:
        text = CONFIGURATION.format(endpoint=endpoint, settings=settings)
        (folder / "outboxd.toml").write_text(text)

    return write


@pytest.fixture
def sqs(aws_endpoint: str) -> "SQSClient":
    return boto3.client("sqs", endpoint_url=aws_endpoint, region_name="us-east-1")


def attributes_of(sqs: "SQSClient", name: str) -> dict[str, str]:
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    return {str(key): value for key, value in answer["Attributes"].items()}


def names_in(sqs: "SQSClient") -> list[str]:
    urls = sqs.list_queues().get("QueueUrls", [])
    return sorted(url.rpartition("/")[2] for url in urls)


def actions(out: str) -> dict[str, str]:
    return {queue["name"]: queue["action"] for queue in json.loads(out)["queues"]}


def test_the_queues_are_created_with_what_the_configuration_says(
    cli: Cli, configure: Configure, sqs: "SQSClient"
) -> None:
    configure("visibility_seconds = 45\nmax_receive_count = 50")

    code, out, err = cli("provision")

    assert (code, err) == (ExitCode.OK, "")
    assert out.endswith("plan: 2 to create, 0 to update, 0 unchanged\n")
    letters, orders = attributes_of(sqs, "orders-dlq"), attributes_of(sqs, "orders")
    assert letters["MessageRetentionPeriod"] == "1209600"
    assert orders["MessageRetentionPeriod"] == "345600"
    assert orders["VisibilityTimeout"] == "45"
    assert orders["ReceiveMessageWaitTimeSeconds"] == "10"
    assert json.loads(orders["RedrivePolicy"]) == {
        "deadLetterTargetArn": letters["QueueArn"],
        "maxReceiveCount": 50,
    }


def test_a_second_run_finds_nothing_to_do(cli: Cli, configure: Configure) -> None:
    configure()
    cli("provision")

    code, out, _ = cli("provision")

    assert code == ExitCode.OK
    assert out.splitlines() == [
        "unchanged  orders-dlq",
        "unchanged  orders",
        "plan: 0 to create, 0 to update, 2 unchanged",
    ]


def test_a_dry_run_changes_nothing(cli: Cli, configure: Configure, sqs: "SQSClient") -> None:
    configure()

    code, out, _ = cli("provision", "--dry-run", "--json")

    assert code == ExitCode.OK
    assert actions(out) == {"orders-dlq": "create", "orders": "create"}
    assert names_in(sqs) == []


def test_only_what_differs_is_updated(cli: Cli, configure: Configure, sqs: "SQSClient") -> None:
    configure()
    cli("provision")
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "7"})
    configure("wait_seconds = 5\nretention_days = 5")

    code, out, _ = cli("provision")

    assert code == ExitCode.OK
    assert out.splitlines() == [
        "unchanged  orders-dlq",
        "update     orders",
        "           ReceiveMessageWaitTimeSeconds: 10 -> 5",
        "           MessageRetentionPeriod: 345600 -> 432000",
        "plan: 0 to create, 1 to update, 1 unchanged",
    ]
    orders = attributes_of(sqs, "orders")
    assert orders["ReceiveMessageWaitTimeSeconds"] == "5"
    assert orders["DelaySeconds"] == "7"


def test_a_retention_is_not_shortened_unasked(
    cli: Cli, configure: Configure, sqs: "SQSClient"
) -> None:
    configure()
    cli("provision")
    configure("retention_days = 1")

    code, _, err = cli("provision")

    assert code == ExitCode.UNEXPECTED
    assert "shortening the retention of orders deletes" in err
    assert "--yes" in err
    assert attributes_of(sqs, "orders")["MessageRetentionPeriod"] == "345600"

    assert cli("provision", "--yes").code == ExitCode.OK
    assert attributes_of(sqs, "orders")["MessageRetentionPeriod"] == "86400"


def test_an_interrupted_provision_is_finished_by_the_next(
    cli: Cli, configure: Configure, sqs: "SQSClient"
) -> None:
    sqs.create_queue(QueueName="orders-dlq")
    configure()

    code, out, _ = cli("provision", "--json")

    assert code == ExitCode.OK
    assert actions(out) == {"orders-dlq": "update", "orders": "create"}
    assert names_in(sqs) == ["orders", "orders-dlq"]


def test_an_aws_that_does_not_answer_is_one_line(
    cli: Cli, configure: Configure, unused_port: int
) -> None:
    configure(endpoint=f"http://127.0.0.1:{unused_port}")

    code, out, err = cli("provision")

    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert err.startswith("outboxd: reading queue orders-dlq: cannot connect: ")
    assert err.endswith("; check [aws] endpoint_url; is `outboxd localaws` running?\n")
    assert err.count("\n") == 1


def test_missing_credentials_are_one_line(
    cli: Cli, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "nowhere")

    code, _, err = cli("provision")

    assert code == ExitCode.UNEXPECTED
    assert "no valid AWS credentials (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or " in err
    assert err.count("\n") == 1


def test_a_profile_that_does_not_exist_is_one_line(
    cli: Cli, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure()
    monkeypatch.setenv("AWS_PROFILE", "nobody")

    code, _, err = cli("provision")

    assert code == ExitCode.UNEXPECTED
    assert "no valid AWS credentials" in err
    assert "(nobody)" in err
    assert err.count("\n") == 1
