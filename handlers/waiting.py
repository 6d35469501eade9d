"""Waiting for what another handler has to do first."""

from outboxd import Context, RetryLater

LONGEST_WAIT_SECONDS = 300.0


def later(reason: str, context: Context) -> RetryLater:
    """To be raised: with delays of 1, 2, 4 ... seconds that grow like the daemon's own, as what is
    waited for may be in an outage. If it never comes, the dead letter has the reason."""
    # The exponent is bounded, as an operator may allow any number of attempts.
    seconds = min(2.0 ** min(context.attempt - 1, 16), LONGEST_WAIT_SECONDS)
    return RetryLater(reason, after_seconds=seconds)
