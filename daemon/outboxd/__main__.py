"""`python -m outboxd` is `outboxd`."""

import sys

from outboxd.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
