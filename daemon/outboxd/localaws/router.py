"""Which service a request is for."""

from outboxd.localaws.control import Control
from outboxd.localaws.errors import AwsError
from outboxd.localaws.events import answering as events_answering
from outboxd.localaws.events.service import EventsService
from outboxd.localaws.exchange import Client, Reply
from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.query import answering as query_answering
from outboxd.localaws.query.form import Form, parsed
from outboxd.localaws.sns.service import SnsService
from outboxd.localaws.sqs.service import SqsService

# The services of the JSON protocols are told apart by the prefix of X-Amz-Target, those of the
# query protocol by their API version.
_SNS_VERSION = "2010-03-31"
_SQS_QUERY_VERSION = "2012-11-05"


class Router:
    def __init__(
        self, sqs: SqsService, sns: SnsService, events: EventsService, control: Control
    ) -> None:
        self._sqs = sqs
        self._sns = sns
        self._events = events
        self._control = control

    def handle(self, request: Request, client: Client) -> Reply:
        if request.path.startswith("/_localaws/"):
            return self._control.handle(request)
        prefix, _, action = request.headers.get("x-amz-target", "").partition(".")
        match prefix:
            case "":
                return self._query(request)
            case "AmazonSQS":
                return self._sqs.handle(request, action, client)
            case "AWSEvents":
                return self._events.handle(request, action)
            case _:
                return _unsupported(prefix, action)

    def _query(self, request: Request) -> Reply:
        form = parsed(request.body)
        if form is not None and form.version == _SNS_VERSION:
            return self._sns.handle(request, form)
        return query_answering.refused(_query_problem(request, form))


def _query_problem(request: Request, form: Form | None) -> AwsError:
    if form is not None and form.version == _SQS_QUERY_VERSION:
        return AwsError(
            "UnsupportedOperation",
            "localaws speaks the JSON protocol of SQS only, not the query protocol "
            f"({form.action}): use an SDK of 2023-11 or later.",
        )
    return AwsError("InvalidAction", f"{request.method} {request.path} is not a request to AWS.")


def _unsupported(service: str, action: str) -> Answer:
    message = f"localaws does not support {service} ({action}), only SQS, SNS and EventBridge."
    return events_answering.refused(AwsError("UnsupportedOperation", message))
