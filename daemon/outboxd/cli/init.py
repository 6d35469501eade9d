"""`outboxd init`: a small project that works, to start one's own from."""

import argparse
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from outboxd.core.errors import OutboxdError
from outboxd.core.exit_codes import ExitCode

STARTER = {
    "events.py": "an event, whose payload is a type",
    "shop.py": "stores orders, and publishes the event in the same transaction",
    "points.py": "the handler of that event",
    "test_points.py": "its test, for pytest",
    "look.py": "shows what the handler did",
    "outboxd.toml": "which events go to which queue, and to which handler",
    "local.env": "where the database and the AWS of a trial are",
    "README.md": "how to run it all",
    ".gitignore": "what git leaves out",
}
"""The files in the order in which one reads them, and what each is.

They lie in the package's folder `starter`, without a leading dot and with `.txt` behind the name:
they are a project of their own, and not code of this one that its tools should find.
"""


class NotStarted(OutboxdError):
    """The project could not be written, and nothing of it was left."""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "init",
        help="write a small project to start from",
        description=(
            "Writes a small project that works: an event, a producer, a handler with its test, and "
            "their configuration. Nothing is written when one of its files exists already. The "
            "page docs/tutorial.md goes on from there."
        ),
        epilog="example: outboxd init shop",
    )
    parser.add_argument(
        "directory",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="DIRECTORY",
        help="where to; it is made if it is not there (default: the working directory)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the files, and say what to do with them. Raises NotStarted."""
    directory: Path = arguments.directory
    try:
        _refuse_to_overwrite(directory)
        _write(directory)
    except OSError as error:
        where = error.filename or directory
        raise NotStarted(f"cannot write {where}: {error.strerror}; nothing was written") from error
    _report(directory)
    return ExitCode.OK


def starter_file(name: str) -> bytes:
    """What `outboxd init` writes as `name`."""
    return files("outboxd").joinpath("starter", f"{name.removeprefix('.')}.txt").read_bytes()


def _refuse_to_overwrite(directory: Path) -> None:
    # lexists: a link that leads nowhere is somebody's too, and would be written through.
    existing = [name for name in STARTER if os.path.lexists(directory / name)]
    if existing:
        names = ", ".join(str(directory / name) for name in existing)
        raise NotStarted(f"{names}: there already, so nothing was written; name another directory")


def _write(directory: Path) -> None:
    """All of the files or, when one of them cannot be written, none, and no new directory."""
    contents = {directory / name: starter_file(name) for name in STARTER}
    new = [each for each in (directory, *directory.parents) if not each.exists()]
    written: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            # "x": of two that start here at the same moment, one is refused.
            with path.open("xb") as file:
                written.append(path)
                file.write(content)
    except BaseException:  # Ctrl-C too
        _remove(written, new)
        raise


def _remove(written: list[Path], new: list[Path]) -> None:
    for path in written:
        path.unlink()
    for directory in new:
        if directory.is_dir():
            directory.rmdir()


def _report(directory: Path) -> None:
    width = max(map(len, STARTER))
    for name, meaning in STARTER.items():
        print(f"wrote {name:<{width}}  {meaning}")
    there = "" if directory == Path() else f", in {directory}"
    print(
        f"\nnext, each in a terminal of its own{there}:\n"
        "  outboxd localpostgres\n"
        "  outboxd localaws\n"
        "  . ./local.env && outboxd migrate && outboxd provision && outboxd run\n"
        "README.md says the rest."
    )
