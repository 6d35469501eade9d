"""Fixtures for the tests of localaws."""

from collections.abc import Iterator

import pytest

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
