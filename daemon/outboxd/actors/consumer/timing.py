"""The durations of a pool that no user has a reason to set."""

import msgspec

from outboxd.core.retry import Backoff


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Tests shorten these; in production they are as they are here."""

    call_timeout_seconds: float = 7.0
    """An extension of ours that was sent longer ago has reached SQS, or never will: the sum of the
    SDK's connect and read timeouts."""

    lease_margin_seconds: float = 15.0
    """What a message may take beyond its handlers' timeouts: inbox, letter, settling."""

    gather_seconds: float = 0.005
    """How long a receive waits for more free slots. With 20 ms there are fewer calls still, but
    slow handlers lost a fifth of their rate."""

    linger_seconds: float = 0.02
    """A settlement waits that long for company, since SQS bills and signs by the call."""

    tell_settled_seconds: float = 0.05
    """How long a settled lease may still count as held, while no Hold takes the word along: each
    frame wakes the supervisor, and with a busy queue the next Hold is nearer than this."""

    settle_seconds: float = 2.0
    """What is kept of a drain's time for settling, once handlers are no longer waited for."""

    last_word_seconds: float = 0.3
    """What is kept of a drain's time for the child's own end."""

    orphan_seconds: float = 4.0
    """How long an orphan settles; its process is ended hard after 5."""

    short_poll_seconds: float = 0.2
    """Between polls of an empty queue that do not wait by themselves (wait_seconds = 0)."""

    overdue_look_seconds: float = 0.5
    """How often it is looked at whether a handler that cannot be interrupted is over its time."""

    retire_seconds: float = 10.0
    """What a process that ends because of such a handler takes at most to settle its messages."""

    sample_seconds: float = 15.0
    """How often the queue's depth is asked for."""

    receive_backoff: Backoff = Backoff(first_seconds=0.5, cap_seconds=20.0)
    fatal_backoff: Backoff = Backoff(first_seconds=5.0, cap_seconds=60.0)
    """Between receives while SQS fails; the second when only a person can help."""

    settle_backoff: Backoff = Backoff(first_seconds=0.2, cap_seconds=5.0)
    letter_backoff: Backoff = Backoff(first_seconds=10.0, cap_seconds=300.0)
    database_backoff: Backoff = Backoff(first_seconds=0.5, cap_seconds=15.0)
