"""SNS over HTTP: from a form to an answer in XML."""

import msgspec

from outboxd.localaws.calls import Calls
from outboxd.localaws.clock import Clock
from outboxd.localaws.errors import AwsError
from outboxd.localaws.exchange import Reply, mapped
from outboxd.localaws.faults import Faults, Target, passed
from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.query.answering import dressed, refused, result
from outboxd.localaws.query.form import Form
from outboxd.localaws.region import region_of
from outboxd.localaws.sns.arns import topic_name
from outboxd.localaws.sns.call import Call
from outboxd.localaws.sns.errors import unknown_action
from outboxd.localaws.sns.operations.table import OPERATIONS, Operation
from outboxd.localaws.sns.registry import Registry
from outboxd.localaws.sqs.inbox import Inbox

NAMESPACE = "http://sns.amazonaws.com/doc/2010-03-31/"


class SnsService:
    """Speaks the query protocol for all topics of all regions; delivers to `inbox`."""

    def __init__(self, clock: Clock, inbox: Inbox, faults: Faults, calls: Calls) -> None:
        self._clock = clock
        self._inbox = inbox
        self._faults = faults
        self._calls = calls
        self._registry = Registry()

    def handle(self, request: Request, form: Form) -> Reply:
        operation = OPERATIONS.get(form.action)
        if operation is None:
            return refused(unknown_action(form.action))
        as_json = request._replace(body=msgspec.json.encode(form.content))
        target = Target("sns", form.action, region_of(request), _topic_of(form))
        self._calls.add(target)
        reply = passed(
            self._faults,
            target,
            as_json,
            lambda asked: self._perform(operation, asked, target),
            refused,
        )
        return mapped(reply, lambda answer: dressed(answer, form.action, NAMESPACE))

    def _perform(self, operation: Operation, request: Request, target: Target) -> Answer:
        base_url = f"http://{request.headers.get('host', 'localhost')}"
        call = Call(self._registry, self._inbox, target.region, base_url, self._clock.now())
        try:
            return result(operation.act(call, operation.decode(request.body)))
        except msgspec.MsgspecError as error:
            return refused(_malformed(str(error)))
        except AwsError as refusal:
            return refused(refusal)


def _topic_of(form: Form) -> str | None:
    """The name of the topic that a request is about, if it is about one."""
    for member in ("TopicArn", "TargetArn", "SubscriptionArn"):
        arn = form.content.get(member)
        if isinstance(arn, str) and arn:
            return topic_name(arn)
    name = form.content.get("Name")
    return name if isinstance(name, str) else None


def _malformed(reason: str) -> AwsError:
    return AwsError("MalformedQueryString", f"The request cannot be read: {reason}")
