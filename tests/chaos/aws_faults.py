"""Faults of AWS: about one call in twenty fails in one of the ways in which calls fail there."""

import random

from outboxd.testing.faults import FaultScript, Where

DELETE = "DeleteMessageBatch"
CHANGE = "ChangeMessageVisibilityBatch"
SEND = "SendMessageBatch"
BATCHES = (DELETE, CHANGE, SEND)
CALLS = (*BATCHES, "ReceiveMessage", "SendMessage", "DeleteMessage", "ChangeMessageVisibility")


def put_in_force(script: FaultScript, dice: random.Random) -> None:
    """Until `script.clear()`. None of them loses a message by AWS's own fault: no send is swallowed
    or refused for good, since no client could make up for it."""

    def often(probability: float) -> Where:
        return Where(count=None, probability=probability, seed=dice.randrange(2**32))

    script.throttle(CALLS, **often(0.005))
    script.throttle(CALLS, code="RequestThrottled", **often(0.005))
    script.server_error(CALLS, status=500, **often(0.005))
    script.server_error(CALLS, status=503, when="after", **often(0.005))
    script.reset(CALLS, when="before", **often(0.005))
    script.reset(CALLS, when="after", **often(0.01))
    script.slow(CALLS, seconds=1.5, **often(0.005))
    script.slow(CALLS, seconds=1.5, when="after", **often(0.005))
    script.hang(CALLS, when="after", **often(0.002))
    script.fail_entries(BATCHES, share=0.3, **often(0.01))
    script.fail_entries(BATCHES, when="after", share=0.3, **often(0.01))
    script.swallow((DELETE, CHANGE), share=0.3, **often(0.01))
    script.stale_receipt((DELETE, CHANGE), share=0.3, **often(0.005))
    script.duplicate(**often(0.02))
    script.reorder(**often(0.05))


def injected(script: FaultScript) -> dict[str, int]:
    """How many calls (messages, for duplicates) each kind has hit."""
    counts: dict[str, int] = {}
    for fault in script.scripted():
        counts[fault["fault"]] = counts.get(fault["fault"], 0) + int(fault["fired"])
    return counts
