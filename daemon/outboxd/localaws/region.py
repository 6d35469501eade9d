"""The region that a client works in; AWS tells by the host name, we by the signature."""

import re

from outboxd.localaws.http1 import Request

DEFAULT_REGION = "us-east-1"
_SCOPE = re.compile(r"Credential=[^/,]+/\d+/([a-z0-9-]+)/")


def region_of(request: Request) -> str:
    """That of the credential scope; the signature itself is checked by nobody."""
    scope = _SCOPE.search(request.headers.get("authorization", ""))
    return DEFAULT_REGION if scope is None else scope[1]
