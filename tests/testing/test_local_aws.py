"""`outboxd.testing.local_aws`: an AWS that a test starts, looks into and moves in time."""

import asyncio
import os
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import boto3
import pytest

from outboxd.testing import ControlError, FaultScript, LocalAws, QueueDepth, local_aws
from outboxd.testing.fixtures import aws as aws  # a fixture is found by its name here

ARN = "arn:aws:sqs:us-east-1:000000000000:orders"


def test_it_serves_a_client_with_its_own_options(aws: LocalAws) -> None:
    sqs = boto3.client("sqs", **aws.client_options)
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.send_message(QueueUrl=url, MessageBody="y", DelaySeconds=60)
    sqs.receive_message(QueueUrl=url, VisibilityTimeout=30)

    assert aws.queues() == {
        "orders": QueueDepth("orders", "us-east-1", ARN, False, visible=0, in_flight=1, delayed=1)
    }
    assert aws.queues()["orders"].total == 2
    sqs.close()


def test_time_is_moved_without_waiting(aws: LocalAws) -> None:
    sqs = boto3.client("sqs", **aws.client_options)
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=900)

    aws.advance(900)

    assert sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "x"
    sqs.close()
    with pytest.raises(ControlError, match="forward only"):
        aws.advance(-1)


def test_its_environment_is_enough_for_another_process(aws: LocalAws) -> None:
    program = (
        "import boto3; sqs = boto3.client('sqs'); print(sqs.create_queue(QueueName='from-there'))"
    )
    subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **aws.environment}, check=True
    )

    assert list(aws.queues()) == ["from-there"]


def test_two_of_them_know_nothing_of_each_other() -> None:
    with local_aws() as one, local_aws() as other:
        sqs = boto3.client("sqs", **one.client_options)
        sqs.create_queue(QueueName="orders")
        sqs.close()

        assert (list(one.queues()), list(other.queues())) == (["orders"], [])


def test_it_is_gone_after_its_block_with_its_thread() -> None:
    before = set(threading.enumerate())
    with local_aws() as aws:
        (own,) = set(threading.enumerate()) - before
        assert own.name == "outboxd local_aws"

    with pytest.raises(ConnectionRefusedError):
        aws.queues()
    assert not own.is_alive()


def test_a_port_in_use_is_an_error_at_the_start(aws: LocalAws) -> None:
    port = urlsplit(aws.endpoint_url).port
    assert port is not None

    with pytest.raises(OSError, match="in use"), local_aws(port=port):
        pass


def test_a_failing_block_fails_as_it_would_anywhere() -> None:
    with pytest.raises(ZeroDivisionError), local_aws():
        _ = 1 / 0


async def test_it_may_be_used_beside_a_running_event_loop() -> None:
    with local_aws() as aws:
        await asyncio.to_thread(aws.advance, 1)
        assert aws.queues() == {}


def test_a_proxy_of_the_environment_is_not_asked(
    aws: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    assert aws.queues() == {}


def test_a_script_reaches_a_server_by_its_address_alone(aws: LocalAws) -> None:
    FaultScript(aws.endpoint_url).throttle("SendMessage")
    LocalAws(f"{aws.endpoint_url}/").faults.hang("SendMessage")

    assert [fault["fault"] for fault in aws.faults.scripted()] == ["throttle", "hang"]
