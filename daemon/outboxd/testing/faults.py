"""A script of faults for a local AWS: which calls fail, how, and how often."""

import time
from collections.abc import Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypedDict, Unpack

import msgspec

from outboxd.core.errors import OutboxdError
from outboxd.localaws.script import kinds
from outboxd.localaws.script.kinds import AnyKind, When
from outboxd.testing.control import ControlClient, ControlError

Operations: TypeAlias = str | Sequence[str]
"""Names of AWS operations, such as "SendMessageBatch", or "*" for all that the fault can hit."""

_LOOK_AGAIN_SECONDS = 0.02


class FaultRefused(OutboxdError, ValueError):
    """There is no such fault; the text says what to write instead."""


class Where(TypedDict, total=False):
    """Which of the calls are hit; the defaults are "*", no text, 1, 0, 1.0, a new one, no end.

    `queue` is a glob, `containing` a text in a body or an attribute. The first `skip` calls are let
    through, each later one is hit with `probability`, by dice that `seed` determines, up to `count`
    hits (None: any number) or for `duration_seconds` of the server's clock.
    """

    queue: str
    containing: str
    count: int | None
    skip: int
    probability: float
    seed: int
    duration_seconds: float


class ScriptedFault:
    """A fault that is in force until it is used up or cleared; leaving a `with` block clears it."""

    def __init__(self, control: ControlClient, id: str, seed: int) -> None:
        self.id = id
        self.seed = seed
        self._control = control
        self._fired_until_cleared: int | None = None

    @property
    def fired(self) -> int:
        """How many calls it has hit (messages, for `duplicate`)."""
        if self._fired_until_cleared is not None:
            return self._fired_until_cleared
        for fault in self._control.call("GET", "faults")["faults"]:
            if fault["id"] == self.id:
                return int(fault["fired"])
        raise LookupError(f"fault {self.id} was cleared with all others, or its server is gone")

    def wait_until_fired(self, times: int = 1, timeout_seconds: float = 10.0) -> None:
        """Return when it has hit so many calls. Raises TimeoutError."""
        end = time.monotonic() + timeout_seconds
        while (fired := self.fired) < times:
            if time.monotonic() >= end:
                raise TimeoutError(
                    f"fault {self.id} has hit {fired} of {times} calls in {timeout_seconds:g} s"
                )
            time.sleep(_LOOK_AGAIN_SECONDS)

    def clear(self) -> None:
        """Take it back: a hanging call is cut off, a slow one goes on at once."""
        try:
            (cleared,) = self._control.call("DELETE", f"faults/{self.id}")["cleared"]
        except ControlError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        else:
            self._fired_until_cleared = int(cleared["fired"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.clear()


class FaultScript:
    """Faults of the local AWS at `endpoint_url`, in this process or any other.

    Every method puts one fault in force at once and returns it. Its settings besides the
    operations say which calls are hit (`Where`). All raise FaultRefused for what makes no sense.
    """

    def __init__(self, endpoint_url: str) -> None:
        self._control = ControlClient(endpoint_url)

    def swallow(
        self,
        operations: Operations = "*",
        *,
        entries: Sequence[int] | None = None,
        share: float | None = None,
        **where: Unpack[Where],
    ) -> ScriptedFault:
        """Answer success and do nothing: a delete, a send, a visibility change.

        Of a batch: for the `entries` at these positions (from 0), or a `share` of them.
        """
        kind = kinds.Swallow(entries=_positions(entries), share=share)
        return self._add(kind, operations, where)

    def stale_receipt(
        self,
        operations: Operations = "*",
        *,
        code: Literal["ReceiptHandleIsInvalid", "MessageNotInflight"] = "ReceiptHandleIsInvalid",
        entries: Sequence[int] | None = None,
        share: float | None = None,
        **where: Unpack[Where],
    ) -> ScriptedFault:
        """Refuse receipt handles of deletes and visibility changes, in a batch entry by entry."""
        kind = kinds.StaleReceipt(code=code, entries=_positions(entries), share=share)
        return self._add(kind, operations, where)

    def fail_entries(
        self,
        operations: Operations = "*",
        *,
        code: str = "InternalError",
        sender_fault: bool = False,
        message: str = "We encountered an internal error. Please try again.",
        when: When = "before",
        entries: Sequence[int] | None = None,
        share: float | None = None,
        **where: Unpack[Where],
    ) -> ScriptedFault:
        """Report entries of a batch as failed; with `when="after"` they are carried out as well."""
        kind = kinds.FailEntries(
            code=code,
            sender_fault=sender_fault,
            message=message,
            when=when,
            entries=_positions(entries),
            share=share,
        )
        return self._add(kind, operations, where)

    def throttle(
        self,
        operations: Operations = "*",
        *,
        code: Literal["ThrottlingException", "RequestThrottled"] = "ThrottlingException",
        **where: Unpack[Where],
    ) -> ScriptedFault:
        """Refuse calls because there are too many: with 400, or 403 as SQS does for a queue."""
        return self._add(kinds.Throttle(code=code), operations, where)

    def server_error(
        self,
        operations: Operations = "*",
        *,
        status: Literal[500, 503] = 500,
        when: When = "before",
        **where: Unpack[Where],
    ) -> ScriptedFault:
        """Fail as AWS fails, before the work or after it."""
        return self._add(kinds.ServerError(status=status, when=when), operations, where)

    def error(
        self,
        operations: Operations = "*",
        *,
        code: str,
        status: int = 400,
        message: str = "A scripted error.",
        **where: Unpack[Where],
    ) -> ScriptedFault:
        """Refuse calls with any other code, such as KmsAccessDenied."""
        kind = kinds.Error(code=code, status=status, message=message)
        return self._add(kind, operations, where)

    def hang(
        self, operations: Operations = "*", *, when: When = "before", **where: Unpack[Where]
    ) -> ScriptedFault:
        """Accept calls and never answer; with `when="after"` they are carried out first."""
        return self._add(kinds.Hang(when=when), operations, where)

    def slow(
        self,
        operations: Operations = "*",
        *,
        seconds: float,
        when: When = "before",
        **where: Unpack[Where],
    ) -> ScriptedFault:
        """Wait before the work, or between the work and the answer; in real time.

        A client that gives up before the work does not prevent it.
        """
        return self._add(kinds.Slow(seconds=seconds, when=when), operations, where)

    def reset(
        self, operations: Operations = "*", *, when: When = "after", **where: Unpack[Where]
    ) -> ScriptedFault:
        """Cut the connection instead of answering, by default with the work done: a client cannot
        tell the two apart."""
        return self._add(kinds.Reset(when=when), operations, where)

    def expired_token(self, operations: Operations = "*", **where: Unpack[Where]) -> ScriptedFault:
        """Refuse calls as if the credentials had expired."""
        return self._add(kinds.ExpiredToken(), operations, where)

    def access_denied(self, operations: Operations = "*", **where: Unpack[Where]) -> ScriptedFault:
        """Refuse calls as if no policy allowed them."""
        return self._add(kinds.AccessDenied(), operations, where)

    def duplicate(self, **where: Unpack[Where]) -> ScriptedFault:
        """Deliver messages of standard queues once more, even if they are deleted meanwhile.

        `count`, `skip` and `probability` are about messages; each is copied once at the most.
        """
        return self._add(kinds.Duplicate(), "ReceiveMessage", where)

    def reorder(self, **where: Unpack[Where]) -> ScriptedFault:
        """Deliver the newest messages of standard queues first, where there are several."""
        return self._add(kinds.Reorder(), "ReceiveMessage", where)

    def scripted(self) -> list[dict[str, Any]]:
        """All faults, used up or not, with their settings and how often each has `fired`."""
        faults: list[dict[str, Any]] = self._control.call("GET", "faults")["faults"]
        return faults

    def clear(self) -> None:
        """Take all faults back."""
        self._control.call("DELETE", "faults")

    def _add(self, kind: AnyKind, operations: Operations, where: Where) -> ScriptedFault:
        content = {**msgspec.to_builtins(kind), "operations": operations, **where}
        try:
            added = self._control.call("POST", "faults", content)
        except ControlError as error:
            raise FaultRefused(str(error)) from None
        return ScriptedFault(self._control, added["id"], added["seed"])


def _positions(entries: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if entries is None else tuple(entries)
