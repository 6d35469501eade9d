"""Which service a request is for."""

from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from outboxd.localaws.control import Control
from outboxd.localaws.errors import AwsError
from outboxd.localaws.exchange import Client, Reply
from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.sqs.service import SqsService

# A service of the JSON protocols joins by its prefix of X-Amz-Target, one of the query protocol
# (SNS) by its API version.
_SQS = "AmazonSQS"
_NOT_YET_TARGETS = {"AWSEvents": "EventBridge"}
_NOT_YET_VERSIONS = {"2010-03-31": "SNS"}
_SQS_QUERY_VERSION = "2012-11-05"


class Router:
    def __init__(self, sqs: SqsService, control: Control) -> None:
        self._sqs = sqs
        self._control = control

    def handle(self, request: Request, client: Client) -> Reply:
        if request.path.startswith("/_localaws/"):
            return self._control.handle(request)
        prefix, _, action = request.headers.get("x-amz-target", "").partition(".")
        if prefix == _SQS:
            return self._sqs.handle(request, action, client)
        if prefix:
            return _json_refusal(_not_supported(_NOT_YET_TARGETS.get(prefix, prefix), action))
        return _query_refusal(_query_problem(request))


def _query_problem(request: Request) -> AwsError:
    form = parse_qs(request.body.decode("utf-8", "replace"))
    action = form.get("Action", ["?"])[0]
    version = form.get("Version", [""])[0]
    if version == _SQS_QUERY_VERSION:
        return AwsError(
            "UnsupportedOperation",
            f"localaws speaks the JSON protocol of SQS only, not the query protocol ({action}): "
            "use an SDK of 2023-11 or later.",
        )
    service = _NOT_YET_VERSIONS.get(version)
    if service is None:
        return AwsError(
            "InvalidAction", f"{request.method} {request.path} is not a request to AWS."
        )
    return _not_supported(service, action)


def _not_supported(service: str, action: str) -> AwsError:
    return AwsError(
        "UnsupportedOperation", f"localaws does not support {service} yet ({action}), only SQS."
    )


def _json_refusal(refusal: AwsError) -> Answer:
    headers = (("x-amzn-query-error", refusal.query_error()),)
    return Answer(refusal.status, "application/x-amz-json-1.1", refusal.body(), headers)


def _query_refusal(refusal: AwsError) -> Answer:
    body = (
        "<ErrorResponse><Error>"
        f"<Type>{refusal.fault}</Type><Code>{refusal.code}</Code>"
        f"<Message>{escape(refusal.message)}</Message>"
        "</Error></ErrorResponse>"
    )
    return Answer(refusal.status, "text/xml", body.encode())
