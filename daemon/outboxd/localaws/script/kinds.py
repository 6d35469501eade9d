"""Every fault there is, with its own settings and the operations that it can take hold of."""

from typing import Annotated, ClassVar, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

BATCHES = frozenset(
    {
        "SendMessageBatch",
        "DeleteMessageBatch",
        "ChangeMessageVisibilityBatch",
        "PublishBatch",
        "PutEvents",
    }
)
DELETES = frozenset({"DeleteMessage", "DeleteMessageBatch"})
VISIBILITY_CHANGES = frozenset({"ChangeMessageVisibility", "ChangeMessageVisibilityBatch"})
RECEIVE = frozenset({"ReceiveMessage"})

# What tells nothing but its success, so that it can be pretended.
WITHOUT_RESULT = frozenset(
    {
        "DeleteMessage",
        "ChangeMessageVisibility",
        "PurgeQueue",
        "DeleteQueue",
        "SetQueueAttributes",
        "TagQueue",
        "UntagQueue",
        "AddPermission",
        "RemovePermission",
        "DeleteTopic",
        "SetTopicAttributes",
        "Unsubscribe",
        "SetSubscriptionAttributes",
        "DeleteEventBus",
        "DeleteRule",
        "EnableRule",
        "DisableRule",
    }
)

When: TypeAlias = Literal["before", "after"]
"""On which side of the server's work a fault lies: not done, or done without the client knowing."""

Positions: TypeAlias = tuple[Annotated[int, Meta(ge=0, le=9)], ...]
Share: TypeAlias = Annotated[float, Meta(gt=0, le=1)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]
Code: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.]{1,100}$")]


class Kind(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="fault"
):
    """A fault's own settings; `hits` are the operations it can take hold of, None for all."""

    hits: ClassVar[frozenset[str] | None] = None


class Swallow(Kind, frozen=True, kw_only=True, tag="swallow"):
    """Success is answered and nothing is done; of a batch, for the chosen entries."""

    hits = BATCHES | WITHOUT_RESULT | {"SendMessage", "Publish"}
    entries: Positions | None = None
    share: Share | None = None


class StaleReceipt(Kind, frozen=True, kw_only=True, tag="stale_receipt"):
    """The receipt handle is refused; in a batch, those of the chosen entries."""

    hits = DELETES | VISIBILITY_CHANGES
    code: Literal["ReceiptHandleIsInvalid", "MessageNotInflight"] = "ReceiptHandleIsInvalid"
    entries: Positions | None = None
    share: Share | None = None


class FailEntries(Kind, frozen=True, kw_only=True, tag="fail_entries"):
    """The chosen entries of a batch are reported as failed, the others are carried out.

    With `when` = "after" the failed ones are carried out too.
    """

    hits = BATCHES
    code: Code = "InternalError"
    sender_fault: bool = False
    message: str = "We encountered an internal error. Please try again."
    when: When = "before"
    entries: Positions | None = None
    share: Share | None = None


class Throttle(Kind, frozen=True, kw_only=True, tag="throttle"):
    """The call is refused because there were too many (ThrottlingException 400, the other 403)."""

    code: Literal["ThrottlingException", "RequestThrottled"] = "ThrottlingException"


class ServerError(Kind, frozen=True, kw_only=True, tag="server_error"):
    """AWS fails: 500 InternalFailure or 503 ServiceUnavailable, before or after the work."""

    status: Literal[500, 503] = 500
    when: When = "before"


class Error(Kind, frozen=True, kw_only=True, tag="error"):
    """The call is refused with any other error."""

    code: Code
    status: Annotated[int, Meta(ge=400, le=599)] = 400
    message: str = "A scripted error."


class Hang(Kind, frozen=True, kw_only=True, tag="hang"):
    """The call is never answered; clearing the fault cuts the connections it holds."""

    when: When = "before"


class Slow(Kind, frozen=True, kw_only=True, tag="slow"):
    """The call takes so much longer, in real time: the server's clock does not shorten it.

    Work that is late is done even if the client has given up meanwhile.
    """

    seconds: Seconds
    when: When = "before"


class Reset(Kind, frozen=True, kw_only=True, tag="reset"):
    """The connection is cut instead of an answer: by default after the work, which the client
    cannot know."""

    when: When = "after"


class ExpiredToken(Kind, frozen=True, kw_only=True, tag="expired_token"):
    """The credentials have expired."""


class AccessDenied(Kind, frozen=True, kw_only=True, tag="access_denied"):
    """No policy allows this call."""


class Duplicate(Kind, frozen=True, kw_only=True, tag="duplicate"):
    """A message of a standard queue is delivered once more, whatever becomes of the first delivery.

    Counts messages, not calls; a copy is not copied again.
    """

    hits = RECEIVE


class Reorder(Kind, frozen=True, kw_only=True, tag="reorder"):
    """A receive of a standard queue delivers the newest messages first, if there are several."""

    hits = RECEIVE


AnyKind: TypeAlias = (
    Swallow
    | StaleReceipt
    | FailEntries
    | Throttle
    | ServerError
    | Error
    | Hang
    | Slow
    | Reset
    | ExpiredToken
    | AccessDenied
    | Duplicate
    | Reorder
)

KINDS: dict[str, type[AnyKind]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(AnyKind)
}
"""By the name that a script uses."""


def hits(kind: AnyKind, operation: str) -> bool:
    """Whether the fault can take hold of this operation."""
    match kind:
        # Only a message that somebody holds can be in flight or not; a delete does not ask.
        case StaleReceipt(code="MessageNotInflight"):
            return operation in VISIBILITY_CHANGES
        case _:
            return kind.hits is None or operation in kind.hits
