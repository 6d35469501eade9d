"""Results and refusals as answers of AWS JSON 1.1."""

from typing import Any

import msgspec

from outboxd.localaws.errors import AwsError
from outboxd.localaws.http1 import Answer
from outboxd.localaws.ids import new_id

CONTENT_TYPE = "application/x-amz-json-1.1"


def answer(result: msgspec.Struct | dict[str, Any] | None) -> Answer:
    """A success; None is one without a body."""
    body = b"" if result is None else msgspec.json.encode(result)
    return Answer(200, CONTENT_TYPE, body, (("x-amzn-requestid", new_id()),))


def refused(refusal: AwsError) -> Answer:
    headers = (("x-amzn-requestid", new_id()),)
    return Answer(refusal.status, CONTENT_TYPE, refusal.body(), headers)
