"""Random histories against a naive model: nothing lost, nothing twice, order kept."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
)

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs.message import Delivery
from tests.localaws.support import Engine

TIMEOUTS = st.sampled_from([0, 1, 2, 5, 30])


@dataclass
class Sent:
    """What the model knows of one message."""

    body: str
    group: str
    visible_at: float
    in_flight: bool = False
    handles: list[str] = field(default_factory=list)

    def holds(self, handle: str) -> bool:
        return bool(self.handles) and self.handles[-1] == handle


class _Histories(RuleBasedStateMachine):
    """Runs an operation on the queue and, slowly and obviously, on a list of messages."""

    queue_name = ""
    handed_out: Bundle[Delivery] = Bundle("handed_out")

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine()
        self.queue = self.engine.queue(self.queue_name, MessageRetentionPeriod=1_209_600)
        self.sent: list[Sent] = []
        self.count = 0

    def deliverable(self) -> list[Sent]:
        raise NotImplementedError

    def visible(self, message: Sent) -> bool:
        return message.visible_at <= self.engine.now

    @rule(group=st.sampled_from("abc"))
    def send(self, group: str) -> None:
        self.count += 1
        body = f"{group}{self.count}"
        self.engine.send(self.queue, body, message_group_id=group)
        self.sent.append(Sent(body, group, self.engine.now))

    @rule(seconds=st.sampled_from([0.5, 1, 3, 31]))
    def wait(self, seconds: float) -> None:
        self.engine.wait(seconds)

    @rule(target=handed_out, maximum=st.integers(1, 10), timeout=TIMEOUTS)
    def receive(self, maximum: int, timeout: int) -> MultipleResults[Delivery]:
        possible = {message.body: message for message in self.deliverable()}
        deliveries = self.engine.receive(self.queue, maximum, timeout)

        bodies = [delivery.message.body for delivery in deliveries]
        assert len(bodies) == len(set(bodies)) == min(maximum, len(possible))
        assert set(bodies) <= set(possible), "delivered while hidden"
        self.check_order(bodies)
        for delivery in deliveries:
            message = possible[delivery.message.body]
            assert delivery.handle not in message.handles
            message.handles.append(delivery.handle)
            message.visible_at = self.engine.now + timeout
            message.in_flight = True
            assert delivery.message.receives == len(message.handles)
        return multiple(*deliveries)

    def check_order(self, bodies: list[str]) -> None:
        """Nothing to check where order is not promised."""

    @rule(delivery=handed_out)
    def delete(self, delivery: Delivery) -> None:
        holder = next((m for m in self.sent if m.holds(delivery.handle)), None)
        try:
            self.engine.delete(self.queue, delivery)
        except AwsError:
            assert self.delete_may_be_refused(delivery.handle)
        else:
            if holder is not None:
                self.sent.remove(holder)

    def delete_may_be_refused(self, handle: str) -> bool:
        return False

    @rule(delivery=handed_out, timeout=TIMEOUTS)
    def change_visibility(self, delivery: Delivery, timeout: int) -> None:
        holder = next((m for m in self.sent if m.holds(delivery.handle)), None)
        alive = holder is not None and not self.visible(holder)
        try:
            self.engine.hide(self.queue, delivery, timeout)
        except AwsError:
            assert not alive, "a live lease could not be changed"
        else:
            assert alive, "a dead lease was changed"
            assert holder is not None
            holder.visible_at = self.engine.now + timeout

    @invariant()
    def the_counts_are_exact(self) -> None:
        visible = sum(self.visible(message) for message in self.sent)
        assert self.engine.depth(self.queue) == (visible, len(self.sent) - visible, 0)

    def teardown(self) -> None:
        """Whatever was not deleted can be received in the end."""
        self.engine.wait(43_200)
        found: set[str] = set()
        while deliveries := self.engine.receive(self.queue):
            found.update(delivery.message.body for delivery in deliveries)
            self.engine.delete(self.queue, *deliveries)
        assert found == {message.body for message in self.sent}
        assert self.engine.depth(self.queue) == (0, 0, 0)


class StandardHistories(_Histories):
    queue_name = "orders"

    def deliverable(self) -> list[Sent]:
        return [message for message in self.sent if self.visible(message)]


class FifoHistories(_Histories):
    queue_name = "orders.fifo"

    def deliverable(self) -> list[Sent]:
        """Of each group the messages before the first hidden one."""
        found: list[Sent] = []
        blocked: set[str] = set()
        for message in self.sent:
            if not self.visible(message):
                blocked.add(message.group)
            elif message.group not in blocked:
                found.append(message)
        return found

    def check_order(self, bodies: list[str]) -> None:
        for group in "abc":
            waiting = [m.body for m in self.deliverable() if m.group == group]
            delivered = [body for body in bodies if body[0] == group]
            assert delivered == waiting[: len(delivered)], "out of order"

    def delete_may_be_refused(self, handle: str) -> bool:
        """An expired or superseded handle of a message that still exists."""
        owner = next((m for m in self.sent if handle in m.handles), None)
        return owner is not None and (not owner.holds(handle) or self.visible(owner))


StandardHistories.TestCase.settings = FifoHistories.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
TestStandardHistories = StandardHistories.TestCase
TestFifoHistories = FifoHistories.TestCase
