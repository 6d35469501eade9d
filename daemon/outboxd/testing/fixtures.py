"""Fixtures for pytest: `from outboxd.testing.fixtures import aws` in a conftest.py gives them.

Not a plugin with an entry point: that would load in every test run of every environment in which
outboxd is installed. pytest is imported here only, so nobody needs it who does not ask for this.
"""

from collections.abc import Iterator

import pytest

from outboxd.testing.aws import LocalAws, local_aws


@pytest.fixture
def aws() -> Iterator[LocalAws]:
    """An empty AWS for this test alone; it starts in a few milliseconds."""
    with local_aws() as aws:
        yield aws
