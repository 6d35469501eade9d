"""`python -m benchmarks`: measure, print a table, write results/latest.json."""

import argparse
import sys
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.place import grounds
from benchmarks.report import results, table, write
from benchmarks.rounds import play
from benchmarks.scenarios import SCENARIOS
from outboxd.core.errors import OutboxdError
from outboxd.demo.postgres import EmbeddedPostgresError

LATEST = Path(__file__).parent / "results" / "latest.json"


def main() -> int:
    """0, or 1 with the reason on standard error."""
    options = _parser().parse_args()
    chosen = [s for s in SCENARIOS if options.only in (None, s.family)]
    try:
        with grounds() as somewhere:
            rounds = play(
                chosen,
                options.events,
                rounds=options.rounds,
                limit_seconds=options.limit,
                grounds=somewhere,
                say=_say,
            )
    except (BenchmarkError, OutboxdError, EmbeddedPostgresError) as error:
        _say(f"benchmarks: {error}")
        return 1
    found = results(rounds, {s.name: s.share(options.events) for s in chosen})
    write(options.output, found)
    print(table(found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures the daemon beside a floor; benchmarks/README.md says how to read it.",
    )
    parser.add_argument(
        "--events",
        type=_positive,
        default=10_000,
        help="of each run, a quarter of it with the inbox (default: 10000)",
    )
    parser.add_argument("--rounds", type=_positive, default=3, help="of everything (default: 3)")
    parser.add_argument(
        "--limit",
        type=_positive,
        default=180,
        metavar="SECONDS",
        help="begin no further round that would end later (default: 180)",
    )
    parser.add_argument(
        "--only", choices=sorted({s.family for s in SCENARIOS}), help="measure no more than this"
    )
    parser.add_argument(
        "--output", type=Path, default=LATEST, help="file for the results (default: %(default)s)"
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
