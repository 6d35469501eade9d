from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.channels.protocol import (
    MAX_FRAME_BYTES,
    Address,
    Drain,
    Hold,
    Lease,
    Message,
    Pause,
    Suspect,
    SuspectsRecorded,
    Welcome,
    decode,
    encode,
)
from outboxd.core.errors import ProtocolError
from outboxd.core.settings import DatabaseSettings, HandlerSettings, QueueSettings, Settings

LEASE = Lease(1, "orders", "m-1", "handle", 12.5, 30, 60.0)
SUSPECT = Suspect("orders", "m-1", True, "signal", UUID(int=5))
SETTINGS = Settings(
    database=DatabaseSettings(url="postgresql://db"),
    queues={
        "orders": QueueSettings(handlers=(HandlerSettings(event="*", handler="a.b:c", name="c"),))
    },
)


@pytest.mark.parametrize(
    "message",
    [
        Welcome(SETTINGS, Address("relay", 3), UUID(int=7), (UUID(int=5),)),
        Welcome(SETTINGS, Address("consumer:orders/1", 3), UUID(int=7), (UUID(int=5),), (SUSPECT,)),
        SuspectsRecorded(),
        Hold(Address("consumer:orders/1", 2), (LEASE,)),
        Drain(1234.5),
        Pause("orders"),
    ],
)
def test_a_message_survives_the_wire(message: Message) -> None:
    assert decode(encode(message)) == message


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_a_message_or_a_protocol_error(body: bytes) -> None:
    try:
        message = decode(body)
    except ProtocolError:
        return
    assert encode(message)


def test_a_message_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ProtocolError, match="undecodable frame"):
        decode(msgspec.msgpack.encode({"type": "Surprise"}))


def test_a_message_beyond_the_frame_limit_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ProtocolError, match="frame limit"):
        encode(Pause("x" * MAX_FRAME_BYTES))
