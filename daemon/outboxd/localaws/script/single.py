"""Faults of calls about one message."""

from outboxd.localaws.exchange import Outcome
from outboxd.localaws.faults import Target
from outboxd.localaws.http1 import Request
from outboxd.localaws.script import refusals
from outboxd.localaws.script.choosing import content_of
from outboxd.localaws.script.kinds import StaleReceipt
from outboxd.localaws.sqs import pretended
from outboxd.localaws.sqs.answering import answer


def swallowed(target: Target, request: Request) -> Outcome:
    """The answer to a call that was not carried out. Raises AwsError if it cannot be read."""
    return answer(pretended.result(target, content_of(request)))


def stale(kind: StaleReceipt, request: Request) -> Outcome:
    """Raises the AwsError that refuses the receipt handle."""
    raise refusals.stale(kind, str(content_of(request).get("ReceiptHandle", "")))
