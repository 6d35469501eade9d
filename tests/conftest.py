"""What every test may ask for: the event loop's kind, and databases of a real PostgreSQL; and how
patient property tests are."""

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, settings

from outboxd.adapters.migrations import Migrations
from outboxd.demo.postgres import EmbeddedPostgres, embedded_postgres
from outboxd.resources import project_directory

_numbers = count(1)

# How long an example takes, to make or to run, says something about the other processes of this
# machine and nothing about what is tested.
settings.register_profile("outboxd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outboxd")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """asyncio only: psycopg's asynchronous connections know no other."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[EmbeddedPostgres]:
    """The one server of this test run; a test that stops or restarts one makes its own."""
    with embedded_postgres(durable=False, max_connections=200) as server:
        yield server


@pytest.fixture(scope="session")
def outboxd_template(postgres_server: EmbeddedPostgres) -> str:
    """Name of the database with outboxd's tables that `database` copies; nobody connects."""
    return _template(postgres_server, "outboxd_template", "outboxd")


@pytest.fixture(scope="session")
def shop_template(postgres_server: EmbeddedPostgres) -> str:
    """Name of the database with outboxd's and the shop's tables that `shop_database` copies."""
    return _template(postgres_server, "shop_template", "outboxd", "shop")


@pytest.fixture
def bare_database(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    """DSN of an empty database of this test alone."""
    yield from _fresh_database(postgres_server, None)


@pytest.fixture
def database(postgres_server: EmbeddedPostgres, outboxd_template: str) -> Iterator[str]:
    """DSN of a database of this test alone, with outboxd's tables in the schema `outboxd`."""
    yield from _fresh_database(postgres_server, outboxd_template)


@pytest.fixture
def shop_database(postgres_server: EmbeddedPostgres, shop_template: str) -> Iterator[str]:
    """The same, with the shop's tables in the schema `shop` as well."""
    yield from _fresh_database(postgres_server, shop_template)


def _fresh_database(server: EmbeddedPostgres, template: str | None) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    yield server.create_database(name, template)
    server.drop_database(name)


def _template(server: EmbeddedPostgres, name: str, *schemas: str) -> str:
    dsn = server.create_database(name)
    for schema in schemas:
        Migrations(dsn, schema, project_directory() / "migrations" / schema).up()
    return name
