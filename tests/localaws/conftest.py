"""Fixtures for the tests of localaws."""

from collections.abc import Iterator

import pytest
from types_boto3_sqs import SQSClient

from outboxd.testing import FaultScript, LocalAws
from tests.localaws.fanout import Fanout, open_fanout
from tests.localaws.staging import Stage, a_queue, open_stage
from tests.localaws.support import Aws, Engine, running_aws


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture(scope="session")
def aws() -> Iterator[Aws]:
    """One server for all tests that block on it; each makes queues with names of its own."""
    with running_aws() as aws:
        yield aws


@pytest.fixture(scope="session")
def server() -> Iterator[tuple[LocalAws, SQSClient]]:
    """One server for all tests of faults, which address theirs to a queue of their own."""
    with open_stage() as server:
        yield server


@pytest.fixture
def stage(server: tuple[LocalAws, SQSClient]) -> Iterator[Stage]:
    aws, sqs = server
    yield a_queue(aws, sqs)
    aws.faults.clear()


@pytest.fixture
def fifo_stage(server: tuple[LocalAws, SQSClient]) -> Iterator[Stage]:
    aws, sqs = server
    yield a_queue(aws, sqs, ".fifo")
    aws.faults.clear()


@pytest.fixture(scope="session")
def fanout_server(server: tuple[LocalAws, SQSClient]) -> Iterator[Fanout]:
    """SNS and EventBridge of that server, which deliver to its queues."""
    aws, _ = server
    with open_fanout(aws.endpoint_url) as fanout:
        yield fanout


@pytest.fixture
def fanout(fanout_server: Fanout, server: tuple[LocalAws, SQSClient]) -> Iterator[Fanout]:
    yield fanout_server
    server[0].faults.clear()


@pytest.fixture
def faults(server: tuple[LocalAws, SQSClient]) -> FaultScript:
    """The script of faults of that server."""
    return server[0].faults
