"""`python -m outboxd.demo.partners`: the partners in a process of its own."""

import argparse
import sys

from outboxd.demo.lifeline import end_with_standard_input
from outboxd.demo.partners.server import run


def main() -> int:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m outboxd.demo.partners",
        description="Plays courier, WhatsApp and push until Ctrl-C. It keeps nothing on disk.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=0, help="port (default: 0, a free one)")
    parser.add_argument(
        "--stop-with-stdin", action="store_true", help="end when the standard input ends"
    )
    arguments = parser.parse_args()
    if arguments.stop_with_stdin:
        end_with_standard_input()
    return run(arguments.host, arguments.port)


if __name__ == "__main__":
    sys.exit(main())
