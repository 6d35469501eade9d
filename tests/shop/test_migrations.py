"""The shop's tables: made as docs/shop.md says, in their own schema; and what a migration does to
rows that are there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from handlers.orders import create_order
from outboxd.adapters.migrations import MigrationFailed, Migrations
from outboxd.resources import project_directory
from tests.shop.customers import a_checkout
from tests.shop.parties import an_order

FOLDER = project_directory() / "migrations" / "shop"
PAGE = project_directory() / "docs" / "shop.md"

CREATE_SCHEMA = "CREATE SCHEMA IF NOT EXISTS shop"

TABLES = """
    SELECT schemaname, tablename
      FROM pg_tables
     WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
       AND tablename !~ 'yoyo'
"""


def commands() -> list[str]:
    """How the page makes the shop's tables."""
    (block,) = re.findall(
        r"^```console\n(\$ psql.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S
    )
    return [each.strip() for each in re.split(r"^\$ ", block, flags=re.M) if each]


def url_of(dsn: str) -> str:
    """A URL, as DATABASE_URL is one."""
    parts = conninfo_to_dict(dsn)
    return "postgresql:///{dbname}?host={host}&port={port}&user={user}".format(**parts)


def carry_out(command: str, dsn: str) -> None:
    environ = {
        **os.environ,
        "DATABASE_URL": url_of(dsn),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    subprocess.run(
        ["sh", "-euc", command], cwd=project_directory(), env=environ, check=True, timeout=50
    )


def follow(page: list[str], dsn: str) -> None:
    for command in page:
        if command.startswith("psql") and shutil.which("psql") is None:
            assert CREATE_SCHEMA in command
            with psycopg.connect(dsn) as connection:
                connection.execute(CREATE_SCHEMA)
        else:
            carry_out(command, dsn)


def tables(dsn: str) -> set[tuple[str, str]]:
    with psycopg.connect(dsn) as connection:
        return set(connection.execute(TABLES).fetchall())


def test_the_page_makes_the_tables_in_their_schema_however_often_it_is_followed(
    bare_database: str,
) -> None:
    for _ in range(2):
        follow(commands(), bare_database)

    made = tables(bare_database)
    assert {schema for schema, _ in made} == {"shop"}
    assert {"orders", "shipments", "stock", "refunds"} <= {table for _, table in made}
    Migrations(bare_database, "shop", FOLDER).check_version()


def test_what_the_page_has_made_can_be_taken_back(bare_database: str) -> None:
    follow(commands(), bare_database)
    (apply,) = [command for command in commands() if "yoyo apply" in command]

    carry_out(apply.replace("yoyo apply", "yoyo rollback --all"), bare_database)

    assert tables(bare_database) == set()


@pytest.fixture
def before_names(bare_database: str, tmp_path: Path) -> str:
    """A shop as it was before names were stored, with a line of an article that has left."""
    for path in sorted(FOLDER.glob("000[1-6]_*.sql")):
        shutil.copy(path, tmp_path)
    Migrations(bare_database, "shop", tmp_path).up()
    with psycopg.connect(bare_database) as connection:
        order_id = an_order(connection)
        connection.execute(
            "INSERT INTO shop.order_items (order_id, line, sku, quantity, unit_price_minor)"
            " VALUES (%(order)s, 1, 'lip-balm', 1, 450), (%(order)s, 2, 'soap', 1, 100)",
            {"order": order_id},
        )
        connection.execute(
            "INSERT INTO shop.shipments (id, order_id, tracking_number) VALUES (%s, %s, 'SG1')",
            (uuid4(), order_id),
        )
    return bare_database


def test_lines_that_are_there_get_the_name_that_their_invoice_has_said(before_names: str) -> None:
    Migrations(before_names, "shop", FOLDER).up()

    with psycopg.connect(before_names) as connection:
        names = connection.execute("SELECT name FROM shop.order_items ORDER BY line").fetchall()
        shipments = connection.execute("SELECT tracking_number, calls FROM shop.shipments")
        assert names == [("Lip Balm",), ("soap",)]
        assert shipments.fetchall() == [("SG1", 1)]


def test_a_way_back_does_not_forget_a_call_that_is_not_answered(shop_database: str) -> None:
    migrations = Migrations(shop_database, "shop", FOLDER)
    migrations.down(_newer_than("0007_"))
    with psycopg.connect(shop_database) as connection:
        order_id = an_order(connection)
        connection.execute(
            "INSERT INTO shop.shipments (id, order_id) VALUES (%s, %s)", (uuid4(), order_id)
        )

    with pytest.raises(MigrationFailed, match="0007_pickups_and_names"):
        migrations.down()

    with psycopg.connect(shop_database) as connection:
        connection.execute("UPDATE shop.shipments SET tracking_number = 'SG1'")
    assert migrations.down() == ["0007_pickups_and_names"]


def _newer_than(number: str) -> int:
    """How many migrations come after this one."""
    names = sorted(path.stem for path in FOLDER.glob("*.sql") if "rollback" not in path.name)
    (place,) = (index for index, name in enumerate(names) if name.startswith(number))
    return len(names) - 1 - place


def test_a_checkout_of_the_version_before_goes_on_while_the_new_one_is_deployed(
    shop: psycopg.Connection,
) -> None:
    order_id: UUID = create_order(shop, a_checkout())

    shop.execute(
        "INSERT INTO shop.order_items (order_id, line, sku, quantity, unit_price_minor)"
        " VALUES (%s, 3, 'lip-balm', 1, 450)",
        (order_id,),
    )
