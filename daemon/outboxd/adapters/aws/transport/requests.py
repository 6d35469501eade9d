"""A prepared request of the AWS SDK as the bytes that go over the wire."""

from botocore.awsrequest import AWSPreparedRequest

from outboxd.adapters.aws.transport.targets import Target

_ONLY_THE_SDK = frozenset({"connection", "expect", "te", "trailer", "transfer-encoding", "upgrade"})
"""Headers that ask for more than a request and its answer."""


def message_of(request: AWSPreparedRequest, target: Target) -> bytes | None:
    """The whole request; None for one that only the SDK's own transport can carry.

    It is what urllib3 would send, header for header: a proxy or an emulator sees no difference.
    """
    body = request.body
    if isinstance(body, str) and body.isascii():  # a form, as for SNS
        body = body.encode("ascii")
    if request.method != "POST" or request.stream_output or not isinstance(body, bytes):
        return None
    context = getattr(request, "context", None)  # which older versions of the SDK do not have
    if context and context.get("read_timeout") is not None:
        return None  # a time-out of this one request
    lines = [b"POST %b HTTP/1.1" % target.path]
    names = set()
    for name, value in request.headers.items():
        names.add(name.lower())
        lines.append(b"%b: %b" % (name.encode("ascii"), _bytes(value)))
    if not names.isdisjoint(_ONLY_THE_SDK) or "content-length" not in names:
        return None
    if "host" not in names:
        lines.append(b"Host: " + target.authority)
    if "accept-encoding" not in names:
        lines.append(b"Accept-Encoding: identity")
    head = b"\r\n".join(lines)
    # A line break inside a value would begin a header of its own; http.client refuses it.
    if head.count(b"\n") != len(lines) - 1 or head.count(b"\r") != len(lines) - 1:
        return None
    return head + b"\r\n\r\n" + body


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8")
