"""When nothing moves any more."""

QUIET_SECONDS = 2.0
"""Between two looks: neither sees a message that is on its way from one place to another."""


class DrainWatch:
    """Decides from one look after the other; pure, so that the clock is an argument."""

    def __init__(self, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._quiet_seconds = quiet_seconds
        self._quiet_since: float | None = None

    def look(self, now: float, *, quiet: bool) -> bool:
        """Whether everything was quiet in this look and in all others of the last seconds.

        `now` is monotonic. It takes two looks at least, `quiet_seconds` apart.
        """
        if not quiet:
            self._quiet_since = None
            return False
        if self._quiet_since is None:
            self._quiet_since = now
        return now - self._quiet_since >= self._quiet_seconds
