"""A shop with nothing sold yet: its catalogue is what the migrations bring."""

from collections.abc import Iterator

import psycopg
import pytest


@pytest.fixture
def shop(shop_database: str) -> Iterator[psycopg.Connection]:
    """A connection to the shop's database; each statement outside a transaction commits."""
    with psycopg.connect(shop_database, autocommit=True) as connection:
        yield connection
