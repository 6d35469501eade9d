"""`outboxd migrate`: brings outboxd's tables to the version that this code knows."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from outboxd.cli.arguments import add_config_argument, add_json_argument, count
from outboxd.cli.confirmation import confirm
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.adapters.migrations import Migrations


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "migrate",
        help="create or change outboxd's tables",
        description=(
            "Brings outboxd's own tables, in the schema that [database] schema names, to the "
            "version that this code knows. `up` applies what is missing, `down` rolls the last "
            "migrations back, `status` lists them. Needs a role that owns the schema."
        ),
        epilog="example: outboxd migrate up --config config/shop.toml",
    )
    parser.add_argument(
        "direction",
        nargs="?",
        choices=("up", "down", "status"),
        default="up",
        help="what to do (default: up)",
    )
    parser.add_argument(
        "--count",
        type=count,
        default=1,
        metavar="N",
        help="how many migrations `down` rolls back (default: 1)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before `down`")
    add_config_argument(parser)
    add_json_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do it, and say what was done."""
    from outboxd.adapters.configuration import load_settings
    from outboxd.adapters.conninfo import database_errors, database_of
    from outboxd.adapters.migrations import Migrations
    from outboxd.resources import project_directory

    database = database_of(load_settings(arguments.config, os.environ))
    directory = project_directory() / "migrations" / "outboxd"
    migrations = Migrations(database.url, database.schema, directory)
    with database_errors(database.url, f"migrating schema {database.schema}"):
        match arguments.direction:
            case "up":
                _report(arguments.json, "applied", migrations.up())
            case "down":
                _down(arguments, migrations, database.schema)
            case _:
                _status(arguments.json, migrations)
    return ExitCode.OK


def _down(arguments: argparse.Namespace, migrations: "Migrations", schema: str) -> None:
    applied = [state.name for state in migrations.status() if state.applied]
    doomed = applied[-arguments.count :]
    if doomed:
        confirm(
            f"rolling back {', '.join(reversed(doomed))} in schema {schema} drops what they made, "
            "with its data",
            yes=arguments.yes,
        )
    _report(arguments.json, "rolled_back", migrations.down(arguments.count))


def _status(as_json: bool, migrations: "Migrations") -> None:
    states = migrations.status()
    if as_json:
        import msgspec

        print(msgspec.json.encode({"migrations": states}).decode())
        return
    for state in states:
        what = "unknown" if state.unknown else "applied" if state.applied else "missing"
        print(f"{what}  {state.name}")


def _report(as_json: bool, done: str, names: list[str]) -> None:
    if as_json:
        import msgspec

        print(msgspec.json.encode({done: names}).decode())
        return
    for name in names:
        print(f"{done.replace('_', ' ')} {name}")
    if not names:
        print(f"nothing to do: {'up to date' if done == 'applied' else 'nothing is applied'}")
