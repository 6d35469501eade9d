"""A shop with nothing sold yet: its catalogue is what the migrations bring; and its partners."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from handlers.shipping import RequestPickup
from outboxd.demo.partners import Partners, running_partners
from outboxd.demo.partners.book import Service


@pytest.fixture
def shop(shop_database: str) -> Iterator[psycopg.Connection]:
    """A connection to the shop's database; each statement outside a transaction commits."""
    with psycopg.connect(shop_database, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def partners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Partners]:
    with running_partners(tmp_path_factory.mktemp("partners") / "log") as running:
        yield running


@pytest.fixture
def request_pickup(partners: Partners, shop_database: str) -> Iterator[RequestPickup]:
    base_url = partners.base_url(Service.COURIER)
    # As texts, which is what a configuration takes from the environment.
    handler = RequestPickup(base_url=base_url, database_url=shop_database, timeout_seconds="5")
    with closing(handler):
        yield handler
