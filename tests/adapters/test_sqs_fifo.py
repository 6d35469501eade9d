"""FIFO queues through the consumer's adapter: repeated receives, letters, groups."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import anyio
import boto3
import pytest

from outboxd.adapters.sqs.queue import SqsQueue, consumer_queue
from outboxd.adapters.sqs.receive_attempts import ReceiveAttempts
from outboxd.core.errors import Unavailable
from outboxd.core.letters import write_letter
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import DeadLetter
from outboxd.core.settings import AwsSettings, QueueSettings, Settings
from outboxd.ports.queue import Hiding
from outboxd.testing import LocalAws
from outboxd.testing.fixtures import aws as aws  # a fixture is found by its name here
from tests.emulators import EMULATORS

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

QUEUE, LETTERS = "orders.fifo", "orders-dlq.fifo"


class Scene:
    """A FIFO queue, its dead-letter queue and the consumer's adapter for them."""

    def __init__(self, endpoint: str) -> None:
        self.sqs: SQSClient = boto3.client("sqs", endpoint_url=endpoint, region_name="us-east-1")
        for name in (QUEUE, LETTERS):
            self.sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})
        settings = Settings(
            aws=AwsSettings(endpoint_url=endpoint),
            queues={"orders": QueueSettings(queue_name=QUEUE, wait_seconds=0)},
        )
        self.queue: SqsQueue = consumer_queue(settings, "orders")

    def send(self, *bodies: str) -> None:
        """Each in the group that its first letter names."""
        url = self.sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
        for body in bodies:
            self.sqs.send_message(
                QueueUrl=url,
                MessageBody=body,
                MessageGroupId=body[0],
                MessageDeduplicationId=f"d-{body}",
            )

    async def bodies(self, limit: int = 10) -> list[str]:
        return [message.body for message in await self.queue.receive(limit, 0)]

    def letters(self) -> list[Any]:
        url = self.sqs.get_queue_url(QueueName=LETTERS)["QueueUrl"]
        answer = self.sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["MessageGroupId", "MessageDeduplicationId"],
        )
        return answer.get("Messages", [])

    def close(self) -> None:
        self.queue.close()
        self.sqs.close()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.fixture(params=EMULATORS)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    with EMULATORS[request.param]() as endpoint:
        scene = Scene(endpoint)
        yield scene
        scene.close()


@pytest.fixture
def faulty(aws: LocalAws) -> Iterator[Scene]:
    """On our own server, which fails on cue."""
    scene = Scene(aws.endpoint_url)
    yield scene
    scene.close()


async def test_messages_come_with_their_group_and_in_its_order(scene: Scene) -> None:
    scene.send("a1", "b1", "a2", "a3", "b2")

    messages = await scene.queue.receive(10, 0)

    assert {m.group_id for m in messages} == {"a", "b"}
    for group in ("a", "b"):
        bodies = [m.body for m in messages if m.group_id == group]
        assert bodies == sorted(bodies)


async def test_a_group_goes_on_once_its_messages_are_settled(scene: Scene) -> None:
    scene.send("a1", "a2", "a3")
    (first,) = await scene.queue.receive(1, 0)
    assert await scene.bodies() == []

    assert await scene.queue.delete([first.receipt_handle]) == []
    second, third = await scene.queue.receive(10, 0)
    assert [second.body, third.body] == ["a2", "a3"]
    released = [Hiding(m.receipt_handle, 0) for m in (third, second)]
    assert await scene.queue.hide(released) == []
    assert await scene.bodies() == ["a2", "a3"]


async def test_a_letter_keeps_its_group_and_arrives_once(scene: Scene) -> None:
    scene.send("a1")
    (message,) = await scene.queue.receive(1, 0)
    letter = write_letter(QUEUE, message, None, DeadLetter(), [], 1.7e9)

    assert await scene.queue.bury([letter]) == []
    assert await scene.queue.bury([letter]) == [], "as after a crash between send and delete"

    (found,) = scene.letters()
    assert found["Body"] == "a1"
    assert found["Attributes"] == {
        "MessageGroupId": "a",
        "MessageDeduplicationId": message.message_id,
    }


async def test_a_receive_whose_answer_is_lost_is_repeated(faulty: Scene, aws: LocalAws) -> None:
    faulty.send("a1", "a2", "b1")
    aws.faults.reset("ReceiveMessage", when="after")
    with pytest.raises(Unavailable):
        await faulty.queue.receive(10, 0)
    assert aws.queues()[QUEUE].in_flight == 3
    aws.advance(20)

    messages = await faulty.queue.receive(10, 0)

    assert [m.body for m in messages] == ["a1", "a2", "b1"]
    assert {m.receive_count for m in messages} == {1}
    aws.advance(20)
    assert aws.queues()[QUEUE].in_flight == 3, "the repetition starts the timeout anew"
    assert await faulty.queue.delete([m.receipt_handle for m in messages]) == []
    assert aws.queues()[QUEUE].total == 0


async def test_an_answer_that_is_lost_twice_is_repeated_twice(faulty: Scene, aws: LocalAws) -> None:
    faulty.send("a1")
    aws.faults.reset("ReceiveMessage", when="after", count=2)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await faulty.queue.receive(10, 0)

    assert await faulty.bodies() == ["a1"]


async def test_after_an_answer_the_next_receive_is_a_new_one(faulty: Scene) -> None:
    faulty.send("a1")
    assert await faulty.bodies() == ["a1"]
    faulty.send("b1")

    assert await faulty.bodies() == ["b1"]


async def test_after_the_visibility_timeout_it_is_a_new_receive(
    faulty: Scene, aws: LocalAws
) -> None:
    faulty.send("a1")
    aws.faults.reset("ReceiveMessage", when="after")
    with pytest.raises(Unavailable):
        await faulty.queue.receive(10, 0)
    aws.advance(31)

    (message,) = await faulty.queue.receive(10, 0)

    assert message.receive_count == 2


async def test_a_narrower_receive_is_not_given_more_than_it_asks_for(
    faulty: Scene, aws: LocalAws
) -> None:
    faulty.send("a1", "a2", "b1")
    aws.faults.reset("ReceiveMessage", when="after")
    with pytest.raises(Unavailable):
        await faulty.queue.receive(10, 0)

    assert await faulty.bodies(limit=1) == []
    aws.advance(31)
    assert await faulty.bodies(limit=1) == ["a1"]


async def test_a_standard_queue_is_not_told_of_attempts(faulty: Scene, aws: LocalAws) -> None:
    """localaws refuses the parameter there, as AWS does."""
    await anyio.to_thread.run_sync(lambda: faulty.sqs.create_queue(QueueName="plain"))
    settings = Settings(
        aws=AwsSettings(endpoint_url=aws.endpoint_url),
        queues={"orders.fifo": QueueSettings(queue_name="plain", wait_seconds=0)},
    )
    queue = consumer_queue(settings, "orders.fifo")
    assert await queue.receive(10, 0) == []
    queue.close()


def test_an_attempt_without_an_answer_keeps_its_id() -> None:
    attempts = ReceiveAttempts()
    first = attempts.begin(5)
    assert attempts.begin(5) == first
    assert attempts.begin(10) == first, "there is room for what the lost one may have held"
    narrow = attempts.begin(4)
    assert narrow != first
    assert attempts.begin(10) == narrow
    assert attempts.begin(9) != narrow, "the lost one may hold ten"
    narrow = attempts.begin(4)
    assert attempts.begin(4) == narrow
    attempts.answered()
    assert attempts.begin(4) not in (first, narrow)
    assert len(first) <= 128


def test_a_letter_for_a_standard_queue_has_a_group_and_no_deduplication_id(
    faulty: Scene, aws: LocalAws
) -> None:
    """localaws refuses the id there, as AWS does."""

    async def bury() -> None:
        message = ReceivedMessage(
            message_id="m1", receipt_handle="r", receive_count=1, sent_at=0, body="x", group_id="g"
        )
        settings = Settings(
            aws=AwsSettings(endpoint_url=aws.endpoint_url), queues={"plain": QueueSettings()}
        )
        queue = consumer_queue(settings, "plain")
        letter = write_letter("plain", message, None, DeadLetter(), [], 1.7e9)
        assert await queue.bury([letter]) == []
        queue.close()

    faulty.sqs.create_queue(QueueName="plain-dlq")
    anyio.run(bury)
    assert aws.queues()["plain-dlq"].visible == 1
