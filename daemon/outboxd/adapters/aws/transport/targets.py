"""Takes a URL apart, or leaves it to the SDK."""

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}

# What needs no quoting, and is therefore the same on the wire as in the URL: urllib3 would rewrite
# anything else.
_SIMPLE = re.compile(r"https?://[A-Za-z0-9\-._:\[\]]+(?P<path>(?:/[A-Za-z0-9\-._~]*)*)\Z")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes, and what its first lines say of that."""

    secure: bool
    host: str
    port: int
    path: bytes
    authority: bytes
    """The value of the Host header, as the SDK has signed it."""


@lru_cache(maxsize=64)
def target_of(url: str) -> Target | None:
    """None for what only the SDK's own transport can carry."""
    simple = _SIMPLE.match(url)
    if simple is None:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # brackets or a port that are none
        return None
    if not host or port == 0:
        return None
    default = DEFAULT_PORTS[parts.scheme]
    written = f"[{host}]" if ":" in host else host
    if port not in (None, default):
        written += f":{port}"
    return Target(
        secure=parts.scheme == "https",
        host=host,
        port=default if port is None else port,
        path=simple["path"].encode("ascii") or b"/",
        authority=written.encode("ascii"),
    )
