"""What the extender is told of leases, in one process without a pool."""

import anyio
import pytest

from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.leases import Leases
from outboxd.actors.consumer.pool import Pool
from outboxd.channels.mailbox import open_mailbox
from outboxd.channels.protocol import Lease, Settled
from outboxd.core.messages import ReceivedMessage
from outboxd.core.settings import QueueSettings
from outboxd.ports.progress import Progress
from tests.consumer.scene import OWNER, Observed

pytestmark = pytest.mark.anyio


def held(token: int) -> Item:
    lease = Lease(token, "orders", "m", "r", 0.0, 30, 60.0)
    message = ReceivedMessage(
        message_id="m", receipt_handle="r", receive_count=1, sent_at=0.0, body=""
    )
    item = Item(lease, message)
    item.held = True
    return item


async def test_a_stop_of_the_receive_that_takes_it_along_loses_no_settled_message() -> None:
    mailbox, counterpart = open_mailbox()
    pool = Pool(name="orders", settings=QueueSettings(), observer=Observed(), progress=Progress())
    leases = Leases(pool, OWNER, mailbox)
    leases.settled([held(7)])

    with anyio.CancelScope() as stopped:
        stopped.cancel()
        await leases.flush()
    assert stopped.cancelled_caught
    leases.settled([held(8)])
    await leases.flush()

    assert await counterpart.heard() == Settled(OWNER, (7, 8))
    mailbox.close()
    counterpart.close()
