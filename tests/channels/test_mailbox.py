from collections.abc import Iterator

import anyio
import pytest

from outboxd.channels.mailbox import Counterpart, Mailbox, open_mailbox
from outboxd.channels.protocol import Bye, ExtenderUp, Pause, Ready

Ends = tuple[Mailbox, Counterpart]


@pytest.fixture
def ends() -> Iterator[Ends]:
    mailbox, counterpart = open_mailbox()
    yield mailbox, counterpart
    mailbox.close()
    counterpart.close()


async def test_messages_arrive_in_the_order_they_were_told(ends: Ends) -> None:
    mailbox, counterpart = ends

    await counterpart.tell(ExtenderUp())
    await counterpart.tell(Pause("orders"))

    assert [await mailbox.receive(), await mailbox.receive()] == [ExtenderUp(), Pause("orders")]


async def test_send_written_returns_only_once_the_message_has_left(ends: Ends) -> None:
    mailbox, counterpart = ends
    history: list[str] = []

    async def send() -> None:
        await mailbox.send_written(Ready())
        history.append("written")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        history.append("taken")
        assert await counterpart.heard() == Ready()

    assert history == ["taken", "written"]


async def test_a_sender_does_not_wait_for_a_counterpart_that_hangs_up(ends: Ends) -> None:
    mailbox, counterpart = ends

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mailbox.send_written, Bye("x"))
        await anyio.wait_all_tasks_blocked()
        counterpart.close()

    await mailbox.send(Ready())
    await mailbox.send_written(Ready())


async def test_the_mailbox_of_a_lost_counterpart_ends(ends: Ends) -> None:
    mailbox, counterpart = ends
    await counterpart.tell(ExtenderUp())
    counterpart.close()

    assert await mailbox.receive() == ExtenderUp()
    with pytest.raises(anyio.EndOfStream):
        await mailbox.receive()


async def test_telling_an_actor_that_has_ended_is_no_error(ends: Ends) -> None:
    _, counterpart = ends
    counterpart.close()

    await counterpart.tell(ExtenderUp())
