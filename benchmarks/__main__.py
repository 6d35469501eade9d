"""`python -m benchmarks`: measure, print tables, write results/latest.json."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

import msgspec

from benchmarks import readme
from benchmarks.catalogue import SCENARIOS
from benchmarks.errors import BenchmarkError
from benchmarks.peers import installing
from benchmarks.place import grounds
from benchmarks.report import read, results, table, write
from benchmarks.rounds import Absences, play
from benchmarks.trials.catalogue import TRIALS
from benchmarks.trials.playing import play_trials
from benchmarks.trials.rounds import beside
from benchmarks.trials.trial import QUICK, Extent, Stage
from outboxd.core.errors import OutboxdError
from outboxd.demo.errors import DemoError
from outboxd.demo.postgres import EmbeddedPostgresError

LATEST = Path(__file__).parent / "results" / "latest.json"
FAMILIES = tuple(
    dict.fromkeys((*(each.family for each in SCENARIOS), *(each.family for each in TRIALS)))
)
SUBJECTS = tuple(dict.fromkeys(e.name for scenario in SCENARIOS for e in scenario.entrants))


def main() -> int:
    """0, or 1 with the reason on standard error; with --strict also if a target was missed."""
    options = _parser().parse_args()
    # So that what was started is ended however this ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        if options.update_readme:
            return _update_readme(options.output)
        return _measure(options)
    except (BenchmarkError, DemoError, OutboxdError, EmbeddedPostgresError) as error:
        _say(f"benchmarks: {error}")
        return 1


def _measure(options: argparse.Namespace) -> int:
    chosen = [
        scenario.narrowed(options.subjects)
        for scenario in SCENARIOS
        if not options.only or scenario.family in options.only
    ]
    trials = [t for t in TRIALS if not options.only or t.family in options.only]
    absences = Absences(_say)
    peers = {e.peer.name: e.peer for s in chosen for e in s.entrants if e.peer is not None}
    peers |= {peer.name: peer for trial in trials for peer in trial.peers}
    for name, reason in (
        dict.fromkeys(peers, "not asked for")
        if options.without_peers
        else installing.install(peers.values(), _say)
    ).items():
        absences.add(name, reason)
    load = os.getloadavg()[0]
    began = time.monotonic()
    with grounds() as somewhere:
        stage = Stage(
            grounds=somewhere,
            extent=QUICK if options.quick else Extent(),
            subjects=options.subjects,
            absences=absences,
            say=_say,
        )
        tried = play_trials(trials, stage)
        rounds = play(
            chosen,
            options.events,
            rounds=options.rounds if chosen else 0,
            limit_seconds=options.limit - (time.monotonic() - began),
            grounds=somewhere,
            absences=absences,
            say=_say,
        )
    present = [peer for name, peer in peers.items() if name not in absences.reasons]
    found = results(beside(rounds, tried), absences.reasons, installing.versions(present), load)
    write(options.output, found)
    print(table(found))
    return 1 if options.strict and found.missed else 0


def _update_readme(latest: Path) -> int:
    try:
        found = read(latest)
    except FileNotFoundError:
        raise BenchmarkError(f"{latest} is missing: run the benchmarks first") from None
    except msgspec.ValidationError as error:
        raise BenchmarkError(
            f"{latest} was written by another version ({error}): run the benchmarks again"
        ) from None
    readme.README.write_text(readme.with_results(readme.README.read_text(), found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures the daemon beside a floor and beside peers; benchmarks/README.md "
        "says how to read it.",
    )
    parser.add_argument(
        "--only", nargs="*", choices=FAMILIES, default=[], help="measure no more than these"
    )
    parser.add_argument(
        "--subjects", nargs="*", choices=SUBJECTS, default=[], help="measure no others"
    )
    parser.add_argument(
        "--events",
        type=_positive,
        help="of each run; the slow ones have fewer (default: 20000, and 50000 to relay)",
    )
    parser.add_argument("--rounds", type=_positive, default=3, help="of everything (default: 3)")
    parser.add_argument(
        "--limit",
        type=_positive,
        default=840,
        metavar="SECONDS",
        help="begin no further round that would end later (default: 840)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="smaller trials: latency, start, recovery, scale"
    )
    parser.add_argument("--without-peers", action="store_true", help="install and measure no peers")
    parser.add_argument(
        "--strict", action="store_true", help="fail if a target is missed, stretches aside"
    )
    parser.add_argument(
        "--output", type=Path, default=LATEST, help="file for the results (default: %(default)s)"
    )
    parser.add_argument(
        "--update-readme",
        action="store_true",
        help="measure nothing: write the results of the last run into benchmarks/README.md",
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
