"""The command line of the relay's chaos test."""

import argparse
from collections.abc import Sequence
from functools import partial

from tests.chaos.once import add_options, play_once
from tests.chaos_relay.run import Options, play


def main(words: Sequence[str] | None = None) -> int:
    """Run once; 0 only if every check holds."""
    arguments = _parser().parse_args(words)
    options = Options(seconds=arguments.seconds, seed=arguments.seed)
    title = f"{options.seconds:g} s"
    return play_once(arguments, title, "outboxd-chaos-relay-", partial(play, options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python tests/chaos_relay",
        description="Runs three relays under six producers, first in calm, then under harm that a "
        "seed decides, and counts what was lost, repeated or out of order. Exits 1 unless every "
        "check holds.",
    )
    add_options(parser, seconds=120.0)
    return parser
