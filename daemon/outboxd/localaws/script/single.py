"""Faults of calls about one message."""

from outboxd.localaws.events import answering as events_answering
from outboxd.localaws.exchange import Outcome
from outboxd.localaws.faults import Target
from outboxd.localaws.http1 import Request
from outboxd.localaws.query import answering as query_answering
from outboxd.localaws.script import refusals
from outboxd.localaws.script.choosing import content_of
from outboxd.localaws.script.kinds import StaleReceipt
from outboxd.localaws.sns import pretended as sns_pretended
from outboxd.localaws.sqs import answering as sqs_answering
from outboxd.localaws.sqs import pretended as sqs_pretended


def swallowed(target: Target, request: Request) -> Outcome:
    """The answer to a call that was not carried out. Raises AwsError if it cannot be read."""
    match target.service:
        case "sns":
            return query_answering.result(sns_pretended.result(target))
        case "events":
            return events_answering.answer(None)
        case _:
            return sqs_answering.answer(sqs_pretended.result(target, content_of(request)))


def stale(kind: StaleReceipt, request: Request) -> Outcome:
    """Raises the AwsError that refuses the receipt handle."""
    raise refusals.stale(kind, str(content_of(request).get("ReceiptHandle", "")))
