"""FIFO queues come to be as such, from both ways to name one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from outboxd.core.exit_codes import ExitCode
from tests.cli.conftest import Cli
from tests.emulators import moto

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

CONFIGURATION = """
[aws]
endpoint_url = "{endpoint}"
[queues.{table}]
{settings}
[[queues.{table}.handlers]]
event = "*"
handler = "shop:ship"
name = "ship"
inbox = "off"
"""

QUEUE_NAME = ("orders", 'queue_name = "orders.fifo"')
TABLE = ('"orders.fifo"', "")

Configure = Callable[[str, str, str], None]


@pytest.fixture
def configure(folder: Path) -> Configure:
    def write(endpoint: str, table: str, settings: str) -> None:
        text = CONFIGURATION.format(endpoint=endpoint, table=table, settings=settings)
        (folder / "outboxd.toml").write_text(text)

    return write


def client(endpoint: str) -> "SQSClient":
    return boto3.client("sqs", endpoint_url=endpoint, region_name="us-east-1")


def attributes_of(sqs: "SQSClient", name: str) -> dict[str, str]:
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    return {str(key): value for key, value in answer["Attributes"].items()}


@pytest.mark.parametrize(("table", "settings"), [QUEUE_NAME, TABLE], ids=["queue_name", "table"])
def test_a_fifo_queue_and_its_dead_letter_queue_are_created(
    cli: Cli, configure: Configure, aws_endpoint: str, table: str, settings: str
) -> None:
    configure(aws_endpoint, table, settings)

    code, out, err = cli("provision")

    assert (code, err) == (ExitCode.OK, "")
    assert out.endswith("plan: 2 to create, 0 to update, 0 unchanged\n")
    sqs = client(aws_endpoint)
    letters, orders = attributes_of(sqs, "orders-dlq.fifo"), attributes_of(sqs, "orders.fifo")
    for queue in (letters, orders):
        assert queue["FifoQueue"] == "true"
        assert queue["DeduplicationScope"] == "messageGroup"
        assert queue["FifoThroughputLimit"] == "perMessageGroupId"
        assert queue.get("ContentBasedDeduplication", "false") == "false"
    assert json.loads(orders["RedrivePolicy"])["deadLetterTargetArn"] == letters["QueueArn"]
    assert cli("provision").out.endswith("plan: 0 to create, 0 to update, 2 unchanged\n")
    sqs.close()


def test_a_fifo_queue_that_exists_is_corrected_but_for_its_deduplication(
    cli: Cli, configure: Configure, aws_endpoint: str
) -> None:
    sqs = client(aws_endpoint)
    sqs.create_queue(
        QueueName="orders.fifo",
        Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"},
    )
    configure(aws_endpoint, *QUEUE_NAME)

    assert cli("provision").code == ExitCode.OK

    orders = attributes_of(sqs, "orders.fifo")
    assert orders["ReceiveMessageWaitTimeSeconds"] == "10"
    assert orders["DeduplicationScope"] == "queue"
    assert orders["ContentBasedDeduplication"] == "true"
    sqs.close()


def test_a_queue_of_the_other_type_is_one_line_and_nothing_is_done(
    cli: Cli, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only moto makes a standard queue with such a name."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with moto() as endpoint:
        sqs = client(endpoint)
        sqs.create_queue(QueueName="orders.fifo")
        configure(endpoint, *QUEUE_NAME)

        code, out, err = cli("provision")

        urls = sqs.list_queues()["QueueUrls"]
        sqs.close()
    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert err.startswith("outboxd: queue orders.fifo exists and is a standard queue, where ")
    assert err.count("\n") == 1
    assert [url.rpartition("/")[2] for url in urls] == ["orders.fifo"]
