"""What botocore makes of the answers: typed exceptions, legacy codes, shapes."""

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.localaws.support import Aws, connection


@pytest.fixture
def name() -> str:
    return f"q-{uuid4().hex[:12]}"


@pytest.fixture
def url(aws: Aws, name: str) -> str:
    return aws.sqs.create_queue(QueueName=name)["QueueUrl"]


@pytest.fixture
def fifo_url(aws: Aws, name: str) -> str:
    created = aws.sqs.create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true"})
    return created["QueueUrl"]


def refused(act: Callable[..., Any], **members: Any) -> ClientError:
    with pytest.raises(ClientError) as caught:
        act(**members)
    return caught.value


def sends(*ids: str) -> list[Any]:
    return [{"Id": entry_id, "MessageBody": "x"} for entry_id in ids]


def deletes(*ids: str) -> list[Any]:
    return [{"Id": entry_id, "ReceiptHandle": "h"} for entry_id in ids]


@pytest.mark.parametrize(
    ("operation", "members", "code", "typed", "status"),
    [
        ("get_queue_url", {"QueueName": "none"}, "AWS.SimpleQueueService.NonExistentQueue",
         "QueueDoesNotExist", 400),
        ("create_queue", {"QueueName": "{name}", "Attributes": {"DelaySeconds": "9"}},
         "QueueAlreadyExists", "QueueNameExists", 400),
        ("get_queue_attributes", {"QueueUrl": "{url}", "AttributeNames": ["Nonsense"]},
         "InvalidAttributeName", "InvalidAttributeName", 400),
        ("set_queue_attributes", {"QueueUrl": "{url}", "Attributes": {"DelaySeconds": "x"}},
         "InvalidAttributeValue", "InvalidAttributeValue", 400),
        ("send_message", {"QueueUrl": "{url}", "MessageBody": "\x00"},
         "InvalidMessageContents", "InvalidMessageContents", 400),
        ("send_message", {"QueueUrl": "{url}", "MessageBody": "x", "DelaySeconds": 901},
         "InvalidParameterValue", None, 400),
        ("send_message", {"QueueUrl": "{url}", "MessageBody": ""}, "MissingParameter", None, 400),
        ("send_message", {"QueueUrl": "http://h/1/orders", "MessageBody": "x"},
         "InvalidAddress", "InvalidAddress", 400),
        ("delete_message", {"QueueUrl": "{url}", "ReceiptHandle": "garbage"},
         "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 400),
        ("send_message_batch", {"QueueUrl": "{url}", "Entries": []},
         "AWS.SimpleQueueService.EmptyBatchRequest", "EmptyBatchRequest", 400),
        ("send_message_batch", {"QueueUrl": "{url}", "Entries": sends(*"abcdefghijk")},
         "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "TooManyEntriesInBatchRequest",
         400),
        ("delete_message_batch", {"QueueUrl": "{url}", "Entries": deletes("a", "a")},
         "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", "BatchEntryIdsNotDistinct", 400),
        ("delete_message_batch", {"QueueUrl": "{url}", "Entries": deletes("a b")},
         "AWS.SimpleQueueService.InvalidBatchEntryId", "InvalidBatchEntryId", 400),
        ("list_message_move_tasks", {"SourceArn": "arn:aws:sqs:us-east-1:000000000000:none"},
         "ResourceNotFoundException", "ResourceNotFoundException", 404),
        ("receive_message", {"QueueUrl": "{url}", "MaxNumberOfMessages": 11},
         "InvalidParameterValue", None, 400),
        ("receive_message", {"QueueUrl": "{url}", "WaitTimeSeconds": 21},
         "InvalidParameterValue", None, 400),
        ("receive_message", {"QueueUrl": "{url}", "VisibilityTimeout": 43201},
         "InvalidParameterValue", None, 400),
        ("receive_message", {"QueueUrl": "{url}", "ReceiveRequestAttemptId": "a"},
         "InvalidParameterValue", None, 400),
        ("receive_message", {"QueueUrl": "{url}", "MessageSystemAttributeNames": ["Nonsense"]},
         "InvalidAttributeName", "InvalidAttributeName", 400),
    ],
)  # fmt: skip
def test_a_refusal_is_typed_and_has_its_legacy_code(
    aws: Aws,
    name: str,
    url: str,
    operation: str,
    members: dict[str, Any],
    code: str,
    typed: str | None,
    status: int,
) -> None:
    filled = {
        key: value.format(name=name, url=url) if isinstance(value, str) else value
        for key, value in members.items()
    }

    error = refused(getattr(aws.sqs, operation), **filled)

    assert error.response["Error"]["Code"] == code
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert error.response["ResponseMetadata"]["RequestId"]
    assert type(error) is (getattr(aws.sqs.exceptions, typed) if typed else ClientError)


def test_late_visibility_changes_and_purges_are_typed_too(aws: Aws, url: str) -> None:
    aws.sqs.send_message(QueueUrl=url, MessageBody="x")
    received = aws.sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)
    handle = received["Messages"][0]["ReceiptHandle"]

    error = refused(
        aws.sqs.change_message_visibility,
        QueueUrl=url,
        ReceiptHandle=handle,
        VisibilityTimeout=10,
    )
    assert isinstance(error, aws.sqs.exceptions.MessageNotInflight)
    assert error.response["Error"]["Code"] == "AWS.SimpleQueueService.MessageNotInflight"

    aws.sqs.purge_queue(QueueUrl=url)
    assert isinstance(
        refused(aws.sqs.purge_queue, QueueUrl=url), aws.sqs.exceptions.PurgeQueueInProgress
    )
    aws.sqs.delete_queue(QueueUrl=url)
    assert isinstance(
        refused(aws.sqs.create_queue, QueueName=url.rsplit("/")[-1]),
        aws.sqs.exceptions.QueueDeletedRecently,
    )
    assert isinstance(
        refused(aws.sqs.send_message, QueueUrl=url, MessageBody="x"),
        aws.sqs.exceptions.QueueDoesNotExist,
    )


def test_a_message_with_everything_comes_back_as_it_was_sent(aws: Aws, fifo_url: str) -> None:
    attributes: dict[str, Any] = {
        "event_type": {"DataType": "String", "StringValue": "order.plâced"},
        "count": {"DataType": "Number", "StringValue": "7"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    trace = "Root=1-5759e988-bd862e3fe1be46a994272793"
    sent = aws.sqs.send_message(
        QueueUrl=fifo_url,
        MessageBody="bödy ✓ 😀",
        MessageAttributes=attributes,
        MessageSystemAttributes={"AWSTraceHeader": {"DataType": "String", "StringValue": trace}},
        MessageGroupId="g",
        MessageDeduplicationId="d",
    )
    assert sent["MD5OfMessageSystemAttributes"]

    (message,) = aws.sqs.receive_message(
        QueueUrl=fifo_url, MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"]
    )["Messages"]

    assert message["Body"] == "bödy ✓ 😀"
    assert message["MessageId"] == sent["MessageId"]
    assert message["MD5OfBody"] == sent["MD5OfMessageBody"]
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert message["MessageAttributes"] == attributes
    system = message["Attributes"]
    assert system["SequenceNumber"] == sent["SequenceNumber"]
    assert system["ApproximateReceiveCount"] == "1"
    assert system["MessageGroupId"] == "g"
    assert system["MessageDeduplicationId"] == "d"
    assert system["AWSTraceHeader"] == trace
    assert abs(int(system["SentTimestamp"]) / 1000 - time.time()) < 3600 * 24
    assert set(system) >= {"SenderId", "ApproximateFirstReceiveTimestamp"}


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ([], None),
        (["All"], {"Help.Me", "Hello", "General"}),
        ([".*"], {"Help.Me", "Hello", "General"}),
        (["Hel.*"], {"Help.Me", "Hello"}),
        (["Help.*"], {"Help.Me"}),
        (["Hello", "None"], {"Hello"}),
        (["None", "Help"], None),
        (["AWS.", "..x"], None),
    ],
)
def test_message_attributes_come_when_they_are_asked_for(
    aws: Aws, url: str, asked: list[str], given: set[str] | None
) -> None:
    value: Any = {"DataType": "String", "StringValue": "v"}
    attributes = dict.fromkeys(("Help.Me", "Hello", "General"), value)
    aws.sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=attributes)

    (message,) = aws.sqs.receive_message(QueueUrl=url, MessageAttributeNames=asked)["Messages"]

    assert set(message.get("MessageAttributes", {})) == (given or set())
    assert ("MD5OfMessageAttributes" in message) == (given is not None)


def test_a_repeated_receive_attempt_gets_the_same_messages(aws: Aws, fifo_url: str) -> None:
    for body in ("1", "2"):
        aws.sqs.send_message(
            QueueUrl=fifo_url, MessageBody=body, MessageGroupId="g", MessageDeduplicationId=body
        )

    def receive(attempt: str) -> list[str]:
        received = aws.sqs.receive_message(
            QueueUrl=fifo_url, MaxNumberOfMessages=10, ReceiveRequestAttemptId=attempt
        )
        return [message["ReceiptHandle"] for message in received.get("Messages", [])]

    handles = receive("attempt-1")

    assert len(handles) == 2
    assert receive("attempt-1") == handles
    assert receive("attempt-2") == []


def test_both_parameters_for_system_attributes_are_heeded(aws: Aws, url: str) -> None:
    aws.sqs.send_message(QueueUrl=url, MessageBody="x")

    (message,) = aws.sqs.receive_message(
        QueueUrl=url,
        AttributeNames=["SenderId"],
        MessageSystemAttributeNames=["SentTimestamp"],
    )["Messages"]

    assert set(message["Attributes"]) == {"SenderId", "SentTimestamp"}


def test_nothing_is_there_rather_than_empty(aws: Aws, url: str) -> None:
    def members(answer: Any) -> set[str]:
        return set(answer) - {"ResponseMetadata"}

    assert members(aws.sqs.receive_message(QueueUrl=url)) == set()
    assert members(aws.sqs.list_queues(QueueNamePrefix="none")) == set()
    assert members(aws.sqs.list_queue_tags(QueueUrl=url)) == set()
    assert members(aws.sqs.get_queue_attributes(QueueUrl=url)) == set()
    assert aws.sqs.list_dead_letter_source_queues(QueueUrl=url)["queueUrls"] == []
    batch = aws.sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "a", "MessageBody": "x"}])
    assert members(batch) == {"Successful"}


def test_a_redrive_from_end_to_end(aws: Aws, name: str, url: str) -> None:
    dead = aws.sqs.create_queue(QueueName=f"{name}-dlq")["QueueUrl"]
    arn = f"arn:aws:sqs:us-east-1:000000000000:{name}-dlq"
    aws.sqs.set_queue_attributes(
        QueueUrl=url,
        Attributes={
            "RedrivePolicy": f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": "1"}}',
            "VisibilityTimeout": "0",
        },
    )
    aws.sqs.send_message(QueueUrl=url, MessageBody="poison")
    aws.sqs.receive_message(QueueUrl=url)

    assert "Messages" not in aws.sqs.receive_message(QueueUrl=url)

    (letter,) = aws.sqs.receive_message(
        QueueUrl=dead, VisibilityTimeout=0, MessageSystemAttributeNames=["All"]
    )["Messages"]
    assert letter["Attributes"]["DeadLetterQueueSourceArn"].endswith(name)

    aws.sqs.start_message_move_task(SourceArn=arn)
    (task,) = aws.sqs.list_message_move_tasks(SourceArn=arn)["Results"]
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1)
    assert aws.sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "poison"


def test_the_region_is_that_of_the_credentials(aws: Aws, name: str) -> None:
    client = boto3.client("sqs", **connection(aws.endpoint, region="ap-southeast-1"))
    url = client.create_queue(QueueName=name)["QueueUrl"]

    attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    assert attributes["Attributes"]["QueueArn"] == f"arn:aws:sqs:ap-southeast-1:000000000000:{name}"
    assert isinstance(
        refused(aws.sqs.get_queue_url, QueueName=name), aws.sqs.exceptions.QueueDoesNotExist
    )
    client.close()


def test_other_services_say_that_they_are_not_there(aws: Aws) -> None:
    client = boto3.client("dynamodb", **connection(aws.endpoint))
    error = refused(client.list_tables)
    assert error.response["Error"]["Code"] == "UnsupportedOperation"
    assert "DynamoDB" in error.response["Error"]["Message"]
    client.close()
