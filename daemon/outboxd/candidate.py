"""Reads a configuration in a process that is thrown away: `python -m outboxd.candidate PATH ...`.

Handlers are imported for it, and whatever their modules do then, they do not do it to the
supervisor. The answer goes to the standard output of the start, one msgpack document: the settings
as they are now, or what is wrong with them.
"""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from outboxd.parentage import tie_to

if TYPE_CHECKING:
    from outboxd.core.reloading import Candidate


def main() -> None:
    """Answer, and end without waiting for threads that an import has started."""
    arguments = _arguments()
    tie_to(arguments.supervisor)
    # The supervisor kills it in time; this is for a supervisor that is not there any more.
    signal.alarm(arguments.seconds)
    # What a module prints while it is imported must not stand in the middle of the answer, and no
    # process that it starts may hold the answer's pipe open.
    answer = os.dup(1)
    os.dup2(2, 1)

    import msgspec

    with os.fdopen(answer, "wb") as pipe:
        pipe.write(msgspec.msgpack.encode(_read(arguments.path, arguments.only)))
    sys.stderr.flush()
    os._exit(0)


def _read(path: Path, only: str | None) -> "Candidate":
    from outboxd.adapters.configuration import load_settings
    from outboxd.adapters.conninfo import conninfo_problems
    from outboxd.adapters.handlers import extend_import_path, handler_problems
    from outboxd.core.children import children_of
    from outboxd.core.errors import SettingsError
    from outboxd.core.reloading import Candidate, run_by
    from outboxd.version import __version__

    try:
        settings = load_settings(path, os.environ)
        specs = children_of(settings, only)
    except SettingsError as error:
        return Candidate(__version__, problems=error.problems)
    extend_import_path(settings.import_path)
    # A host that runs the relay alone need not have the code of handlers.
    problems = [*conninfo_problems(settings), *handler_problems(run_by(settings, specs))]
    if problems:
        return Candidate(__version__, problems=tuple(f"{path}: {each}" for each in problems))
    return Candidate(__version__, settings=settings)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="outboxd.candidate", description=__doc__)
    parser.add_argument("path", type=Path, help="the configuration file")
    parser.add_argument("--supervisor", type=int, required=True, help="the supervisor's pid")
    parser.add_argument("--seconds", type=int, required=True, help="how long it may take")
    parser.add_argument("--only", help="the part whose handlers are imported")
    return parser.parse_args()


if __name__ == "__main__":
    main()
