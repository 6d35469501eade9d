"""What the chaos commands have in common: their options, and a run with a folder of its logs."""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.chaos.report import as_json, as_table
from tests.chaos.run import Result
from tests.chaos.timetable import Say

Play = Callable[[Path, Say], Result]
"""One run, which leaves its logs in the folder."""


def add_options(parser: argparse.ArgumentParser, *, seconds: float) -> None:
    """How long (`seconds` by default), with which seed, and what is left of it."""
    parser.add_argument(
        "--seconds", type=_seconds, default=seconds, help=f"default {seconds:g}, at least 30"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=random.SystemRandom().randrange(10**6),
        help="of the schedule; default: a new one, printed",
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as one object")
    parser.add_argument("--keep", action="store_true", help="keep the logs of a good run too")


def play_once(arguments: argparse.Namespace, title: str, prefix: str, play: Play) -> int:
    """Run, and print what is found; 0 only if every check holds, else its folder stays."""
    told = sys.stderr if arguments.json else sys.stdout

    def say(text: str) -> None:
        told.write(f"{text}\n")
        told.flush()

    say(f"seed {arguments.seed}, {title}")
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    kept = True
    try:
        result = play(directory, say)
        sys.stdout.write(f"{as_json(result) if arguments.json else as_table(result)}\n")
        kept = not result.ok or arguments.keep
        return 0 if result.ok else 1
    finally:
        if kept:
            say(f"what it left is in {directory}; --seed {arguments.seed} has the same schedule")
        else:
            shutil.rmtree(directory)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 30 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError("less than 30 s are too short for all that has to happen")
    return seconds
