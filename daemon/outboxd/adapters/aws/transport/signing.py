"""Signs requests with AWS Signature Version 4, with the key of the day kept.

The SDK derives the key anew for each request and walks through its headers five times, which
takes a third of what is left of a call. It can be told by its public events that a request needs
no signature, and that this one has been added.
"""

import hmac
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import botocore
from botocore.auth import SIGNED_HEADERS_BLACKLIST, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, ReadOnlyCredentials

from outboxd.adapters.aws.transport.targets import target_of

_ALGORITHM = "AWS4-HMAC-SHA256"
_BY_THE_SDK = frozenset({"date", "x-amz-content-sha256"})
"""Headers that change what is signed."""


class LeanSigner:
    """Signs the requests of one client, from any number of threads, exactly as SigV4Auth does."""

    def __init__(self, credentials: Credentials, clock: Callable[[], float] = time.time) -> None:
        """`credentials`: the client's own, which may be refreshed; `clock`: of the world, since
        AWS compares it with its own."""
        self._credentials = credentials
        self._clock = clock
        self._key: tuple[tuple[str, ...], bytes] = ((), b"")

    def choose(self, signature_version: object, context: Mapping[str, Any], **_: object) -> object:
        """The handler of `choose-signer`: nobody else is to sign what `sign` will."""
        if signature_version != "v4" or context.get("signing", {}).get("request_credentials"):
            return None
        return botocore.UNSIGNED

    def sign(
        self,
        request: AWSRequest,
        signing_name: str,
        region_name: str,
        signature_version: object,
        **_: object,
    ) -> None:
        """The handler of `before-sign`. Raises what the credentials raise."""
        if signature_version is not botocore.UNSIGNED:
            return
        context: dict[str, Any] = request.context
        signing = context.get("signing", {})
        place = (
            signing.get("region") or region_name,
            signing.get("signing_name") or signing_name,
        )
        credentials = self._credentials.get_frozen_credentials()
        if not self._signed(request, credentials, *place):
            region, service = place
            SigV4Auth(credentials, service, region).add_auth(request)

    def _signed(
        self, request: AWSRequest, credentials: ReadOnlyCredentials, region: str, service: str
    ) -> bool:
        """Sign what has the form of a call to SQS, SNS or EventBridge; False for anything else."""
        target = target_of(request.url or "")
        if target is None or target.path != b"/" or request.params or request.method != "POST":
            return False
        items: list[tuple[str, Any]] = request.headers.items()
        headers: dict[str, str] = {
            name.lower(): value for name, value in items if isinstance(value, str)
        }
        context: dict[str, Any] = request.context
        if (
            len(headers) != len(items)
            or not headers.keys().isdisjoint(_BY_THE_SDK)
            or not context.get("payload_signing_enabled", True)
            or "request_algorithm" in context.get("checksum", {})
        ):
            return False
        body = request.data if isinstance(request.data, bytes) else request.body
        if not isinstance(body, bytes):
            return False
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock()))
        added = {"X-Amz-Date": now}
        if credentials.token:
            added["X-Amz-Security-Token"] = credentials.token
        for name in ("Authorization", *added):
            if headers.pop(name.lower(), None) is not None:  # a retry
                del request.headers[name]
        for name, value in added.items():
            headers[name.lower()] = value
            request.headers[name] = value
        headers.setdefault("host", target.authority.decode("ascii"))
        context["timestamp"] = now
        request.headers["Authorization"] = self._authorization(
            headers, body, credentials, now, region, service
        )
        return True

    def _authorization(
        self,
        headers: dict[str, str],
        body: bytes,
        credentials: ReadOnlyCredentials,
        now: str,
        region: str,
        service: str,
    ) -> str:
        """The header's value. `headers` are those of the request, by their lower-case names."""
        names = sorted(headers.keys() - SIGNED_HEADERS_BLACKLIST)
        lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in names)
        signed = ";".join(names)
        canonical = f"POST\n/\n\n{lines}\n{signed}\n{sha256(body).hexdigest()}"
        day = now[:8]
        scope = f"{day}/{region}/{service}/aws4_request"
        digest = sha256(canonical.encode()).hexdigest()
        signature = hmac.new(
            self._key_of(credentials.secret_key or "", day, region, service),
            f"{_ALGORITHM}\n{now}\n{scope}\n{digest}".encode(),
            sha256,
        ).hexdigest()
        return (
            f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={signed}, Signature={signature}"
        )

    def _key_of(self, secret: str, *scope: str) -> bytes:
        """The key of a day, a region and a service, as long as nobody asks for another one."""
        wanted = (secret, *scope)
        known, key = self._key  # one read: another thread may replace both
        if known != wanted:
            key = f"AWS4{secret}".encode()
            for part in (*scope, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key = (wanted, key)
        return key
