"""`python tests/chaos_relay`: see docs/chaos.md."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # The path holds this directory, and what is in it is imported by its full name.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from tests.chaos_relay.command import main

    sys.exit(main())
