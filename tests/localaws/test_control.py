"""`/_localaws/`: health, the clock, exact depths; and what is no request to AWS."""

import json
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from outboxd.version import __version__
from tests.localaws.support import Aws, running_aws
from tests.localaws.wire import Connection, encoded

DEAD_ARN = "arn:aws:sqs:us-east-1:000000000000:dead"


@pytest.fixture(scope="module")
def own_aws() -> Iterator[Aws]:
    """A server whose clock may be moved without a word to other tests."""
    with running_aws() as aws:
        yield aws


def test_health(own_aws: Aws) -> None:
    health = own_aws.control("GET", "health")

    assert (health["status"], health["version"]) == ("ok", __version__)
    assert health["services"] == ["sqs", "sns", "events"]


def test_depths_are_exact_and_follow_the_clock(own_aws: Aws) -> None:
    own_aws.sqs.create_queue(QueueName="empty.fifo", Attributes={"FifoQueue": "true"})
    url = own_aws.sqs.create_queue(QueueName="orders")["QueueUrl"]
    for delay in (0, 0, 0, 600):
        own_aws.sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=delay)
    own_aws.sqs.receive_message(QueueUrl=url, VisibilityTimeout=300)

    def depths() -> dict[str, tuple[int, int, int]]:
        listed = own_aws.control("GET", "queues")["queues"]
        return {q["name"]: (q["visible"], q["in_flight"], q["delayed"]) for q in listed}

    assert (depths()["empty.fifo"], depths()["orders"]) == ((0, 0, 0), (2, 1, 1))
    before = own_aws.control("GET", "health")["advanced_seconds"]
    own_aws.advance(300)
    assert depths()["orders"] == (3, 0, 1)
    moved = own_aws.control("POST", "clock", {"advance_seconds": 300})
    assert moved["advanced_seconds"] == before + 600
    assert depths()["orders"] == (4, 0, 0)
    (fifo,) = (q for q in own_aws.control("GET", "queues")["queues"] if q["name"] == "empty.fifo")
    assert (fifo["fifo"], fifo["region"]) == (True, "us-east-1")
    assert fifo["arn"] == "arn:aws:sqs:us-east-1:000000000000:empty.fifo"


def test_a_dead_letter_is_counted_where_it_is_as_soon_as_the_clock_has_moved(own_aws: Aws) -> None:
    dead = own_aws.sqs.create_queue(QueueName="dead")["QueueUrl"]
    policy = {"deadLetterTargetArn": DEAD_ARN, "maxReceiveCount": 1}
    source = own_aws.sqs.create_queue(
        QueueName="source", Attributes={"RedrivePolicy": json.dumps(policy)}
    )["QueueUrl"]
    for expected in range(1, 20):
        own_aws.sqs.send_message(QueueUrl=source, MessageBody="poison")
        own_aws.sqs.receive_message(QueueUrl=source, VisibilityTimeout=30)

        own_aws.advance(30)

        count = own_aws.sqs.get_queue_attributes(
            QueueUrl=dead, AttributeNames=["ApproximateNumberOfMessages"]
        )["Attributes"]["ApproximateNumberOfMessages"]
        assert count == str(expected)


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("POST", "clock", {"advance_seconds": -1}, 400),
        ("POST", "clock", {"advance_seconds": "soon"}, 400),
        ("POST", "clock", {"seconds": 1}, 400),
        ("POST", "clock", None, 400),
        ("GET", "clock", None, 404),
        ("GET", "nothing", None, 404),
    ],
)
def test_a_wrong_request_is_told_the_right_one(
    own_aws: Aws, method: str, path: str, content: object, status: int
) -> None:
    with pytest.raises(HTTPError) as refusal:
        own_aws.control(method, path, content)

    assert refusal.value.code == status
    with refusal.value:
        message = json.load(refusal.value)["error"]
    assert ("advance_seconds" if status == 400 else "/_localaws/health") in message


@pytest.mark.parametrize(
    ("target", "body", "status", "expected"),
    [
        ("AmazonSQS.Nonsense", b"{}", 400, b"#UnknownOperationException"),
        ("AmazonSQS.SendMessage", b"{", 400, b"#SerializationException"),
        ("AmazonSQS.SendMessage", b"[]", 400, b"#SerializationException"),
        ("AmazonSQS.SendMessage", b'{"MessageBody": 1}', 400, b"#SerializationException"),
        ("AmazonSQS.SendMessage", b'{"MessageBody": "\\ud800"}', 400, b"#SerializationException"),
        ("Other.Thing", b"{}", 400, b"does not support Other (Thing)"),
        ("", b"Action=SendMessage&Version=2012-11-05", 400, b"JSON protocol"),
        ("", b"Action=Nonsense&Version=2010-03-31", 400, b"<Code>InvalidAction</Code>"),
        ("", b"Action=CreateTopic&Tags=x&Version=2010-03-31", 400, b"MalformedQueryString"),
        ("", b"\xff", 400, b"is not a request to AWS"),
        ("AWSEvents.Nonsense", b"{}", 400, b"#UnknownOperationException"),
        ("AWSEvents.PutEvents", b'{"Entries": 1}', 400, b"#SerializationException"),
        ("", b"", 400, b"is not a request to AWS"),
    ],
)
async def test_what_cannot_be_done_is_said_in_the_manner_of_aws(
    own_aws: Aws, target: str, body: bytes, status: int, expected: bytes
) -> None:
    connection = await Connection.open(own_aws.endpoint)
    connection.writer.write(encoded(target, body))

    response = await connection.read()

    assert response.status == status
    assert expected in response.body
    connection.close()
