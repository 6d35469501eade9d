"""Results and refusals as answers of AWS JSON 1.0."""

import msgspec

from outboxd.localaws.errors import AwsError
from outboxd.localaws.http1 import Answer
from outboxd.localaws.ids import new_id

CONTENT_TYPE = "application/x-amz-json-1.0"

_encode = msgspec.json.Encoder().encode


def answer(result: msgspec.Struct | None) -> Answer:
    """A success; None is one without a body."""
    body = b"" if result is None else _encode(result)
    return Answer(200, CONTENT_TYPE, body, (("x-amzn-requestid", new_id()),))


def refused(refusal: AwsError) -> Answer:
    """A failure, with the header by which botocore finds the code of the older protocol."""
    headers = (
        ("x-amzn-requestid", new_id()),
        ("x-amzn-query-error", refusal.query_error()),
    )
    return Answer(refusal.status, CONTENT_TYPE, refusal.body(), headers)
