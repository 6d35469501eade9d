"""The command line of the chaos test."""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.report import as_json, as_table
from tests.chaos.run import Options, play
from tests.chaos.workload import PUBLISHED_POISON, SHARES

EVENTS_PER_SECOND = 28
"""Over the whole run, so that 180 s make 5,000."""


def main(words: Sequence[str] | None = None) -> int:
    """Run once; 0 only if every check holds."""
    arguments = _parser().parse_args(words)
    options = Options(
        seconds=arguments.seconds,
        seed=random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed,
        events=arguments.events or round(EVENTS_PER_SECOND * arguments.seconds),
        without=frozenset(arguments.without),
    )
    told = sys.stderr if arguments.json else sys.stdout

    def say(text: str) -> None:
        told.write(f"{text}\n")
        told.flush()

    say(f"seed {options.seed}, {options.seconds:g} s, {options.events} events")
    directory = Path(tempfile.mkdtemp(prefix="outboxd-chaos-"))
    kept = True
    try:
        result = play(options, directory, say)
        sys.stdout.write(f"{as_json(result) if arguments.json else as_table(result)}\n")
        kept = not result.ok or arguments.keep
        return 0 if result.ok else 1
    finally:
        if kept:
            say(
                f"logs, letters and effects are in {directory}; --seed {options.seed} does it again"
            )
        else:
            shutil.rmtree(directory)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python tests/chaos",
        description="Runs the daemon under load, harms it in every way that a seed decides, and "
        "counts what was lost, doubled or dead-lettered. Exits 1 unless every check holds.",
    )
    parser.add_argument("--seconds", type=_seconds, default=180.0, help="default 180, at least 30")
    parser.add_argument("--seed", type=int, help="of the schedule; default: a new one, printed")
    parser.add_argument("--events", type=int, help="default: 28 for each second")
    parser.add_argument("--json", action="store_true", help="print the verdict as one object")
    parser.add_argument("--keep", action="store_true", help="keep the logs of a good run too")
    parser.add_argument(
        "--without",
        nargs="*",
        default=[],
        choices=sorted({*SHARES, *PUBLISHED_POISON}),
        metavar="TYPE",
        help="leave out events of these types, to find out what a failure depends on",
    )
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 30 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError("less than 30 s are too short for all that has to happen")
    return seconds
