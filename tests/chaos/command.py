"""The command line of the chaos test."""

import argparse
from collections.abc import Sequence
from functools import partial

from tests.chaos.once import add_options, play_once
from tests.chaos.run import Options, play
from tests.chaos.workload import PUBLISHED_POISON, SHARES

EVENTS_PER_SECOND = 28
"""Over the whole run, so that 180 s make 5,000."""


def main(words: Sequence[str] | None = None) -> int:
    """Run once; 0 only if every check holds."""
    arguments = _parser().parse_args(words)
    options = Options(
        seconds=arguments.seconds,
        seed=arguments.seed,
        events=arguments.events or round(EVENTS_PER_SECOND * arguments.seconds),
        without=frozenset(arguments.without),
    )
    title = f"{options.seconds:g} s, {options.events} events"
    return play_once(arguments, title, "outboxd-chaos-", partial(play, options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python tests/chaos",
        description="Runs the daemon under load, harms it in every way that a seed decides, and "
        "counts what was lost, doubled or dead-lettered. Exits 1 unless every check holds.",
    )
    add_options(parser, seconds=180.0)
    parser.add_argument("--events", type=int, help="default: 28 for each second")
    parser.add_argument(
        "--without",
        nargs="*",
        default=[],
        choices=sorted({*SHARES, *PUBLISHED_POISON}),
        metavar="TYPE",
        help="leave out events of these types, to find out what a failure depends on",
    )
    return parser
