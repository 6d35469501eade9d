"""The command line of the relay's chaos test."""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.report import as_json, as_table
from tests.chaos_relay.run import Options, play


def main(words: Sequence[str] | None = None) -> int:
    """Run once; 0 only if every check holds."""
    arguments = _parser().parse_args(words)
    options = Options(
        seconds=arguments.seconds,
        seed=random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed,
    )
    told = sys.stderr if arguments.json else sys.stdout

    def say(text: str) -> None:
        told.write(f"{text}\n")
        told.flush()

    say(f"seed {options.seed}, {options.seconds:g} s")
    directory = Path(tempfile.mkdtemp(prefix="outboxd-chaos-relay-"))
    kept = True
    try:
        result = play(options, directory, say)
        sys.stdout.write(f"{as_json(result) if arguments.json else as_table(result)}\n")
        kept = not result.ok or arguments.keep
        return 0 if result.ok else 1
    finally:
        if kept:
            say(f"logs are in {directory}; --seed {options.seed} has the same schedule")
        else:
            shutil.rmtree(directory)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python tests/chaos_relay",
        description="Runs three relays under six producers, first in calm, then under harm that a "
        "seed decides, and counts what was lost, repeated or out of order. Exits 1 unless every "
        "check holds.",
    )
    parser.add_argument("--seconds", type=_seconds, default=120.0, help="default 120, at least 30")
    parser.add_argument("--seed", type=int, help="of the schedule; default: a new one, printed")
    parser.add_argument("--json", action="store_true", help="print the verdict as one object")
    parser.add_argument("--keep", action="store_true", help="keep the logs of a good run too")
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 30 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError("less than 30 s are too short for all that has to happen")
    return seconds
