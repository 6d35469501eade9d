"""Results and refusals as the XML of the query protocol."""

from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape

import msgspec

from outboxd.localaws.errors import AwsError
from outboxd.localaws.http1 import Answer
from outboxd.localaws.ids import new_id

CONTENT_TYPE = "text/xml"
_JSON = "application/json"

# The members that are maps; other objects are structures.
_MAPS = frozenset({"Attributes"})


def result(content: msgspec.Struct | dict[str, Any] | None) -> Answer:
    """A success, still in JSON, in which faults can change it; None is one without a result."""
    return Answer(200, _JSON, b"" if content is None else msgspec.json.encode(content))


def dressed(answer: Answer, action: str, namespace: str) -> Answer:
    """The answer as the client is to see it."""
    if answer.content_type != _JSON:
        return answer
    request_id = new_id()
    content = "".join(_members(msgspec.json.decode(answer.body))) if answer.body else None
    body = (
        f'<{action}Response xmlns="{namespace}">'
        + ("" if content is None else f"<{action}Result>{content}</{action}Result>")
        + f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
        + f"</{action}Response>"
    )
    headers = (("x-amzn-requestid", request_id),)
    return Answer(answer.status, CONTENT_TYPE, body.encode(), headers)


def refused(refusal: AwsError) -> Answer:
    request_id = new_id()
    body = (
        "<ErrorResponse><Error>"
        f"<Type>{refusal.fault}</Type><Code>{refusal.code}</Code>"
        f"<Message>{_text(refusal.message)}</Message>"
        f"</Error><RequestId>{request_id}</RequestId></ErrorResponse>"
    )
    headers = (("x-amzn-requestid", request_id),)
    return Answer(refusal.status, CONTENT_TYPE, body.encode(), headers)


def _members(content: dict[str, Any]) -> Iterator[str]:
    for name, value in content.items():
        if name in _MAPS:
            yield f"<{name}>{''.join(_entries(value))}</{name}>"
        else:
            yield f"<{name}>{_inside(value)}</{name}>"


def _entries(content: dict[str, str]) -> Iterator[str]:
    for key, value in content.items():
        yield f"<entry><key>{_text(key)}</key><value>{_text(value)}</value></entry>"


def _inside(value: Any) -> str:
    match value:
        case dict():
            return "".join(_members(value))
        case list():
            return "".join(f"<member>{_inside(each)}</member>" for each in value)
        case bool():
            return "true" if value else "false"
        case _:
            return _text(str(value))


def _text(text: str) -> str:
    # A bare carriage return would be read as a line feed.
    return escape(text, {"\r": "&#13;"})
