"""Every message that crosses a channel: one closed, tagged union of frozen structs.

Times are `core.clock.boottime()` seconds, which all processes of a host share.
"""

from typing import TypeAlias
from uuid import UUID

import msgspec

from outboxd.core.errors import ProtocolError
from outboxd.core.settings import Settings

MAX_FRAME_BYTES = 1 << 20
"""The longest frame that is sent or accepted; longer ones end the channel that they come from."""

NO_ANSWER = 0
"""The correlation of a request that nobody waits for; correlations of others begin at 1."""


class Address(msgspec.Struct, frozen=True, array_like=True):
    """One incarnation of one child: a successor has the same name and another number."""

    name: str
    incarnation: int

    def __str__(self) -> str:
        return f"{self.name}#{self.incarnation}"


class Lease(msgspec.Struct, frozen=True, array_like=True):
    """The right to work on one received message until a deadline, as SQS granted it.

    `token` is new for every receive; `queue` is the name in the configuration. `received_at` was
    taken before the receive call was sent, so the true deadline is never earlier than
    `received_at + visibility_seconds`. The lease is not extended beyond `permitted_until`, the end
    of the longest time that its handlers may take.
    """

    token: int
    queue: str
    message_id: str
    receipt_handle: str
    received_at: float
    visibility_seconds: int
    permitted_until: float


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One line of an exposition: name, labels, value."""

    name: str
    labels: dict[str, str]
    value: float


class Family(msgspec.Struct, frozen=True, array_like=True):
    """One metric with all its samples; `type` is counter, gauge or histogram."""

    name: str
    type: str
    help: str
    samples: tuple[Sample, ...]


class Suspect(msgspec.Struct, frozen=True, array_like=True):
    """A message that was in the hands of a consumer when its process died, so that its handler may
    have been the cause. `alone` says that nothing else was; `reason` how the process ended; `death`
    is the identity of the incarnation that it was: however often it is told, it has died once."""

    queue: str
    message_id: str
    alone: bool
    reason: str
    death: UUID


class Welcome(msgspec.Struct, frozen=True, tag=True):
    """supervisor → child, the first frame: all that the child needs to know.

    `identity` is new for every incarnation; `predecessors` are the identities of dead incarnations
    of this child, newest last, each of them reaped; `suspects` is what they may have died of.
    """

    settings: Settings
    address: Address
    identity: UUID
    predecessors: tuple[UUID, ...] = ()
    suspects: tuple[Suspect, ...] = ()


class Ready(msgspec.Struct, frozen=True, tag=True):
    """child → supervisor: configured, handlers imported, clients built, first poll issued."""


class SuspectsRecorded(msgspec.Struct, frozen=True, tag=True):
    """consumer → supervisor: the suspects of its welcome are written down. Before or after Ready,
    but never after a Hold: until then it receives nothing."""


class Heartbeat(msgspec.Struct, frozen=True, tag=True):
    """child → supervisor, from the child's own event loop.

    `last_receive_at` is the end of the last receive (a consumer) or read (a relay) that was
    answered, `oldest_started_at` the start of the longest-running handler; None when there is none.
    `handled` counts the messages whose handlers have all ended since the start of the process.
    """

    loop_lag_seconds: float
    in_flight: int
    oldest_started_at: float | None
    last_receive_at: float | None
    rss_bytes: int
    cpu_seconds: float
    open_fds: int
    threads: int
    handled: int = 0


class MetricsSnapshot(msgspec.Struct, frozen=True, tag=True):
    """child → supervisor: the child's metrics since its start, all of them, so that a lost or a
    superseded frame costs nothing."""

    sequence: int
    families: tuple[Family, ...]


class Drain(msgspec.Struct, frozen=True, tag=True):
    """supervisor → child: take no new work, finish what is in hand before `deadline`, say Bye."""

    deadline: float


class Bye(msgspec.Struct, frozen=True, tag=True):
    """child → supervisor: the last word of a planned end."""

    reason: str
    snapshot: MetricsSnapshot | None = None


class Hold(msgspec.Struct, frozen=True, tag=True):
    """consumer → extender: keep these leases alive. Written before any of their handlers starts, so
    that it outlives the consumer."""

    owner: Address
    leases: tuple[Lease, ...]


class Alone(msgspec.Struct, frozen=True, tag=True):
    """consumer → supervisor: this held message's handlers run now, and nothing beside them. Written
    before they start, so that it outlives the consumer; over with its Forget or Settled, and with
    the owner's next Alone or Hold: nothing is received during a run alone."""

    owner: Address
    token: int


class Forget(msgspec.Struct, frozen=True, tag=True):
    """consumer → extender: stop extending these leases, and answer `Forgotten` once no extension of
    them can be on its way any more."""

    owner: Address
    tokens: tuple[int, ...]
    correlation: int


class Forgotten(msgspec.Struct, frozen=True, tag=True):
    """extender → consumer: the answer to the `Forget` of the same correlation."""

    owner: Address
    correlation: int


class Settled(msgspec.Struct, frozen=True, tag=True):
    """consumer → extender: deleted, hidden or released; nothing is left to give back."""

    owner: Address
    tokens: tuple[int, ...]


class LeaseLost(msgspec.Struct, frozen=True, tag=True):
    """extender → consumer: SQS says that these receipts are no longer ours."""

    owner: Address
    tokens: tuple[int, ...]


class OwnerGone(msgspec.Struct, frozen=True, tag=True):
    """supervisor → extender: this incarnation is dead and reaped; give its leases back, forgotten
    but unsettled ones too."""

    owner: Address
    why: str


class ExtenderUp(msgspec.Struct, frozen=True, tag=True):
    """supervisor → consumers: an extender is ready; receiving may go on."""


class ExtenderDown(msgspec.Struct, frozen=True, tag=True):
    """supervisor → consumers: no extender is running; receive nothing new."""


class Pause(msgspec.Struct, frozen=True, tag=True):
    """operator → consumers of a queue: receive nothing new until `Resume`."""

    queue: str


class Resume(msgspec.Struct, frozen=True, tag=True):
    """operator → consumers of a queue: receive again."""

    queue: str


Message: TypeAlias = (
    Welcome
    | Ready
    | SuspectsRecorded
    | Heartbeat
    | MetricsSnapshot
    | Drain
    | Bye
    | Hold
    | Alone
    | Forget
    | Forgotten
    | Settled
    | LeaseLost
    | OwnerGone
    | ExtenderUp
    | ExtenderDown
    | Pause
    | Resume
)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    """The message as a body of at most MAX_FRAME_BYTES. Raises ProtocolError beyond that."""
    body = _encoder.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise ProtocolError(
            f"a {type(message).__name__} of {len(body)} bytes exceeds the frame limit of "
            f"{MAX_FRAME_BYTES} bytes"
        )
    return body


def decode(body: bytes) -> Message:
    """The message of a body. Raises ProtocolError if it is none."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(f"undecodable frame of {len(body)} bytes: {error}") from error
