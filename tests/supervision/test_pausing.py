"""A pause reaches every pool of its queue, those that start later before they may receive."""

import anyio
import pytest

from outboxd.channels.protocol import (
    ExtenderUp,
    Pause,
    Resume,
)
from outboxd.supervision.health import SupervisorHealth
from outboxd.supervision.ledger import Ledger
from outboxd.supervision.pauses import Pauses, UnknownQueue
from outboxd.supervision.process import Spawn
from outboxd.supervision.switchboard import Switchboard
from tests.supervision.scene import Facts, Heard, Run, a_supervisor, a_welcome, spec

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")


class Exchange:
    """A switchboard with links to nobody, and the pauses of the queues `orders` and `mails`."""

    def __init__(self) -> None:
        self.switchboard = Switchboard(Ledger(), lambda address, snapshot: None)
        self.facts = Facts()
        self.now = 1000.0
        self.pauses = Pauses(
            lambda: ("orders", "mails"), self.switchboard, self.facts, lambda: self.now
        )

    def attach(self, name: str) -> Heard:
        link = Heard(name)
        self.switchboard.attach(link, a_welcome(link.address))
        return link


@pytest.fixture
def exchange() -> Exchange:
    return Exchange()


async def test_every_pool_of_the_queue_is_told_and_nobody_else(exchange: Exchange) -> None:
    links = [exchange.attach(name) for name in ("relay", "extender")]
    pools = [exchange.attach(f"consumer:{name}") for name in ("orders/1", "orders/2", "mails/1")]

    exchange.pauses.pause("orders")
    exchange.pauses.resume("orders")

    told = [Pause("orders"), Resume("orders")]
    assert [pool.heard[1:] for pool in pools] == [told, told, []]
    assert all(len(link.heard) == 1 for link in links)
    assert exchange.facts.history == ["orders paused", "orders resumed"]


async def test_a_pool_that_starts_later_hears_of_it_before_it_may_receive(
    exchange: Exchange,
) -> None:
    exchange.attach("extender")
    exchange.switchboard.extender_ready()
    exchange.pauses.pause("orders")
    successor = exchange.attach("consumer:orders/1")
    other = exchange.attach("consumer:mails/1")

    assert successor.heard == [a_welcome(successor.address), Pause("orders"), ExtenderUp()]
    assert other.heard == [a_welcome(other.address), ExtenderUp()]

    exchange.pauses.resume("orders")
    assert exchange.attach("consumer:orders/2").heard[1:] == [ExtenderUp()]


@pytest.mark.parametrize("name", ["order", "", "relay"])
async def test_a_queue_that_nobody_consumes_is_named_with_those_that_there_are(
    exchange: Exchange, name: str
) -> None:
    with pytest.raises(UnknownQueue, match=f'the queue "{name}"; it has orders, mails'):
        exchange.pauses.pause(name)
    with pytest.raises(UnknownQueue):
        exchange.pauses.resume(name)
    assert exchange.facts.history == []


async def test_what_is_done_already_is_done_once_more_without_harm(exchange: Exchange) -> None:
    exchange.pauses.resume("orders")
    assert exchange.pauses.resumed_at("orders") == 0.0, "there was no pause"

    exchange.pauses.pause("orders")
    exchange.pauses.pause("orders")
    assert exchange.pauses.paused("orders")
    exchange.pauses.resume("orders")
    exchange.now += 5
    exchange.pauses.resume("orders")

    assert not exchange.pauses.paused("orders")
    assert exchange.pauses.resumed_at("orders") == 1000.0


async def test_a_paused_pool_is_ready_although_it_receives_nothing(spawn: Spawn) -> None:
    facts = Facts()
    name = "consumer:heard_long_ago/1"
    supervisor = a_supervisor(facts, spawn, spec(name))
    late = 1e12
    health = SupervisorHealth(supervisor, clock=lambda: late)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: f"{name} heartbeat" in f.history and "ready" in f.history)
        assert health.ready() != []
        supervisor.pause("heard_long_ago")
        assert health.ready() == []
        supervisor.resume("heard_long_ago")
        late = supervisor.pauses.resumed_at("heard_long_ago") + 29
        assert health.ready() == [], "the silence of the pause does not count"
        late += 40
        assert health.ready() == [f"{name} has not received for 69 s"]
        supervisor.stop("test")
