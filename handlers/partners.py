"""Calls to the shop's partners over HTTP, and what their answers mean for an event.

No transaction may be open during a call: a partner that is slow would hold its locks. What a
partner has accepted is known by the idempotency key, the same in every attempt, so a call whose
answer was lost is simply made again.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Thread
from typing import Annotated
from urllib.parse import quote

import httpx
from msgspec import Meta, Struct

from outboxd import Reject, RetryLater

LONGEST_WAIT_SECONDS = 3600.0
"""What a partner may ask for with Retry-After; more would look as if the event were lost."""

LONGEST_ANSWER_BYTES = 65_536

LONGEST_WORDS = 300

TRY_AGAIN = frozenset({408, 409, 425, 429})
"""4xx that are about the moment and not about the request. 409 is what a service says while the
first request of an idempotency key is still being worked on."""


# A line for each request, which says less than the handler's own.
logging.getLogger("httpx").setLevel(logging.WARNING)


class PartnerOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a partner's API is; `token` goes into `Authorization: Bearer`, and into no error.

    `timeout_seconds` is for a whole call: from looking up the name to the end of the answer.
    """

    base_url: str
    timeout_seconds: Annotated[float, Meta(gt=0, le=600)] = 10.0
    token: str | None = None


class PartnerAway(Exception):
    """The partner cannot be used now, or its answer was lost: call again with the same key."""


class Partner:
    """One partner's API; may be used by several threads at a time.

    The calls are made by an event loop in a thread of its own. Without one nothing ends a call on
    time: a timeout of httpx is for each read or write, so a partner that sends its headers byte by
    byte is waited for as long as it likes, and none at all is for the name server.
    """

    def __init__(self, name: str, options: PartnerOptions) -> None:
        """`name` is what errors call it. Raises ValueError for a base_url that is none."""
        url = _checked(options.base_url)
        self._name = name
        self._base = str(url).rstrip("/")
        self._token = options.token
        self._seconds = options.timeout_seconds
        self._client = httpx.AsyncClient(
            headers={} if options.token is None else {"Authorization": f"Bearer {options.token}"},
            timeout=None,  # each call has a deadline for all of it
            # A proxy of the environment is for what is outside of this machine.
            trust_env=url.host not in ("127.0.0.1", "::1", "localhost"),
        )
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name=f"calls {name}", daemon=True)
        self._thread.start()

    def post(self, path: str, content: object, *, key: str, seconds_left: float) -> bytes:
        """The body of a success, at most 64 KiB of it.

        Returns or raises within `seconds_left`: Reject when the partner will never take this,
        RetryLater when it has said how long to wait, and PartnerAway for everything else.
        """
        if seconds_left <= 0:
            raise PartnerAway(
                f"no time was left to call {self._name}: give the handler more timeout_seconds"
            )
        seconds = min(self._seconds, seconds_left)
        sent = self._send(path, content, key, seconds)
        try:
            status, retry_after, body = asyncio.run_coroutine_threadsafe(sent, self._loop).result()
        except TimeoutError as error:
            raise PartnerAway(
                f"{self._name} at {self._base} had not answered after {seconds:.1f} s"
            ) from error
        except httpx.RequestError as error:
            what = str(error) or type(error).__name__
            raise PartnerAway(f"{self._name} at {self._base} did not answer: {what}") from error
        words = _words(body)
        if self._token:
            words = words.replace(self._token, "***")  # some services repeat what they refuse
        refused = refusal(self._name, status, retry_after, words)
        if refused is not None:
            raise refused
        return body

    def close(self) -> None:
        """Close its connections; for tests, as a handler lives as long as its process."""
        asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _send(
        self, path: str, content: object, key: str, seconds: float
    ) -> tuple[int, str | None, bytes]:
        """Raises TimeoutError."""
        async with (
            asyncio.timeout(seconds),
            self._client.stream(
                "POST",
                f"{self._base}{path}",
                json=content,
                headers={"Idempotency-Key": quote(key, safe=":.-_")},  # headers are ASCII
            ) as response,
        ):
            body = b""
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) >= LONGEST_ANSWER_BYTES:
                    break
            return response.status_code, response.headers.get("Retry-After"), body


def refusal(
    name: str,
    status: int,
    retry_after: str | None,
    words: str,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Exception | None:
    """What an answer means for the event: None is a success, anything else is to be raised."""
    if 200 <= status < 300:
        return None
    said = f"{status}: {words}" if words else str(status)
    if 400 <= status < 500 and status not in TRY_AGAIN:
        return Reject(f"{name} refused this ({said})")
    if status < 400:
        return PartnerAway(f"{name} answered {status}: is its base_url still right?")
    seconds = wait_seconds(retry_after, now())
    if seconds is None:
        return PartnerAway(f"{name} is not ready ({said})")
    return RetryLater(f"{name} is not ready ({said})", after_seconds=seconds)


def wait_seconds(retry_after: str | None, now: datetime) -> float | None:
    """`Retry-After` (RFC 9110, 10.2.3), in seconds or as a date; None if it says nothing usable."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:9])
    else:
        try:
            at = parsedate_to_datetime(text)
        except ValueError:
            return None
        # A date with -0000 has no zone, and RFC 9110 knows only GMT.
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    return min(max(seconds, 1.0), LONGEST_WAIT_SECONDS)


def _words(body: bytes) -> str:
    """What a person can read of an answer: the member that says it, or the text itself."""
    text = body.decode(errors="replace")
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if isinstance(answer, dict):
        told = (answer.get(name) for name in ("detail", "message", "error", "title"))
        text = next((each for each in told if isinstance(each, str)), text)
    readable = "".join(each if each.isprintable() else " " for each in text[:4096])
    return " ".join(readable.split())[:LONGEST_WORDS]


def _checked(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("`base_url` is no URL: expected https://HOST/PATH")
    if url.userinfo or url.query or url.fragment:
        # Not told which: the text goes to logs, and a password may be in it.
        raise ValueError("`base_url` may have neither a user, a query nor a fragment: use `token`")
    return url
