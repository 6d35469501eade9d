"""Creating, finding, listing and configuring queues."""

from collections.abc import Callable

import msgspec
import pytest

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs import requests, responses
from outboxd.localaws.sqs.call import Call
from outboxd.localaws.sqs.operations import access, queues
from tests.localaws.support import Engine


def create(engine: Engine, name: str, **attributes: str) -> str:
    return queues.create_queue(engine.call, requests.CreateQueue(name, attributes)).queue_url


def attributes(engine: Engine, name: str, *names: str) -> dict[str, str]:
    request = requests.GetQueueAttributes(name, list(names) or ["All"])
    return dict(queues.get_queue_attributes(engine.call, request).attributes)


def set_attributes(engine: Engine, name: str, **values: str) -> None:
    queues.set_queue_attributes(engine.call, requests.SetQueueAttributes(name, values))


def refusal(act: Callable[[], object]) -> AwsError:
    with pytest.raises(AwsError) as caught:
        act()
    return caught.value


def test_a_new_queue_has_the_defaults_of_aws(engine: Engine) -> None:
    assert create(engine, "orders") == "http://aws/000000000000/orders"
    assert attributes(engine, "orders") == {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "CreatedTimestamp": "1700000000",
        "DelaySeconds": "0",
        "LastModifiedTimestamp": "1700000000",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "QueueArn": "arn:aws:sqs:us-east-1:000000000000:orders",
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
        "VisibilityTimeout": "30",
    }


def test_a_new_fifo_queue_has_some_more(engine: Engine) -> None:
    create(engine, "orders.fifo", FifoQueue="true")

    assert attributes(
        engine,
        "orders.fifo",
        "FifoQueue",
        "ContentBasedDeduplication",
        "DeduplicationScope",
        "FifoThroughputLimit",
    ) == {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoThroughputLimit": "perQueue",
    }


def test_only_what_is_asked_for_is_told(engine: Engine) -> None:
    create(engine, "orders", DelaySeconds="7")

    assert attributes(engine, "orders", "DelaySeconds", "RedrivePolicy") == {"DelaySeconds": "7"}
    request = requests.GetQueueAttributes("orders")
    assert queues.get_queue_attributes(engine.call, request).attributes == {}


def test_creating_again_with_the_same_or_no_attributes_returns_the_queue(engine: Engine) -> None:
    url = create(engine, "orders", VisibilityTimeout="60")

    assert create(engine, "orders", VisibilityTimeout="60") == url
    assert create(engine, "orders", MaximumMessageSize="1048576") == url
    assert create(engine, "orders") == url


def test_creating_again_compares_with_the_present_attributes(engine: Engine) -> None:
    create(engine, "orders", VisibilityTimeout="60")
    set_attributes(engine, "orders", VisibilityTimeout="90")

    error = refusal(lambda: create(engine, "orders", VisibilityTimeout="60"))

    assert (error.shape, error.code) == ("QueueNameExists", "QueueAlreadyExists")
    assert "VisibilityTimeout" in error.message
    create(engine, "orders", VisibilityTimeout="90")


def test_creating_a_queue_of_the_other_type_again_is_refused(engine: Engine) -> None:
    engine.queue("orders.fifo")

    error = refusal(lambda: create(engine, "orders.fifo", FifoQueue="false"))

    assert error.code == "InvalidParameterValue"


def test_a_name_is_free_a_minute_after_the_deletion(engine: Engine) -> None:
    create(engine, "orders")
    queues.delete_queue(engine.call, requests.QueueOnly("orders"))

    assert refusal(lambda: attributes(engine, "orders")).shape == "QueueDoesNotExist"
    assert refusal(lambda: create(engine, "orders")).shape == "QueueDeletedRecently"
    engine.wait(60)
    create(engine, "orders")


@pytest.mark.parametrize(
    ("name", "fifo", "code"),
    [
        ("", False, "MissingParameter"),
        ("with space", False, "InvalidParameterValue"),
        ("slash/ed", False, "InvalidParameterValue"),
        ("é", False, "InvalidParameterValue"),
        ("x" * 81, False, "InvalidParameterValue"),
        ("orders.fifo", False, "InvalidParameterValue"),
        ("orders", True, "InvalidParameterValue"),
        ("x" * 76 + ".fifo", True, "InvalidParameterValue"),
        (".fifo", True, "InvalidParameterValue"),
    ],
)
def test_bad_names(engine: Engine, name: str, fifo: bool, code: str) -> None:
    attributes = {"FifoQueue": "true"} if fifo else {}

    assert refusal(lambda: create(engine, name, **attributes)).code == code


@pytest.mark.parametrize("name", ["x" * 80, "A-b_9"])
def test_good_names(engine: Engine, name: str) -> None:
    assert create(engine, name).endswith(name)


@pytest.mark.parametrize(
    ("attribute", "value", "shape"),
    [
        ("VisibilityTimeout", "43201", "InvalidAttributeValue"),
        ("VisibilityTimeout", "-1", "InvalidAttributeValue"),
        ("VisibilityTimeout", "1.5", "InvalidAttributeValue"),
        ("VisibilityTimeout", "", "InvalidAttributeValue"),
        ("VisibilityTimeout", "٣", "InvalidAttributeValue"),
        ("DelaySeconds", "901", "InvalidAttributeValue"),
        ("MaximumMessageSize", "1023", "InvalidAttributeValue"),
        ("MaximumMessageSize", "1048577", "InvalidAttributeValue"),
        ("MessageRetentionPeriod", "59", "InvalidAttributeValue"),
        ("MessageRetentionPeriod", "1209601", "InvalidAttributeValue"),
        ("ReceiveMessageWaitTimeSeconds", "21", "InvalidAttributeValue"),
        ("KmsDataKeyReusePeriodSeconds", "59", "InvalidAttributeValue"),
        ("SqsManagedSseEnabled", "perhaps", "InvalidAttributeValue"),
        ("Policy", "no json", "InvalidAttributeValue"),
        ("QueueArn", "x", "InvalidAttributeName"),
        ("Nonsense", "x", "InvalidAttributeName"),
        ("FifoQueue", "false", "InvalidAttributeName"),
        ("ContentBasedDeduplication", "true", "InvalidAttributeName"),
        ("DeduplicationScope", "queue", "InvalidAttributeName"),
        ("FifoThroughputLimit", "perQueue", "InvalidAttributeName"),
    ],
)
def test_bad_attributes(engine: Engine, attribute: str, value: str, shape: str) -> None:
    assert refusal(lambda: create(engine, "orders", **{attribute: value})).shape == shape
    create(engine, "orders")
    assert refusal(lambda: set_attributes(engine, "orders", **{attribute: value})).shape == shape


def test_a_refused_change_changes_nothing(engine: Engine) -> None:
    create(engine, "orders")
    before = attributes(engine, "orders")

    refusal(lambda: set_attributes(engine, "orders", DelaySeconds="5", VisibilityTimeout="x"))

    assert attributes(engine, "orders") == before


def test_the_type_of_a_queue_is_for_ever(engine: Engine) -> None:
    create(engine, "orders.fifo", FifoQueue="true")

    error = refusal(lambda: set_attributes(engine, "orders.fifo", FifoQueue="true"))

    assert error.shape == "InvalidAttributeValue"


def test_throughput_per_group_needs_deduplication_per_group(engine: Engine) -> None:
    create(engine, "orders.fifo", FifoQueue="true")
    per_group = {"FifoThroughputLimit": "perMessageGroupId"}

    assert refusal(lambda: set_attributes(engine, "orders.fifo", **per_group)).shape == (
        "InvalidAttributeValue"
    )
    set_attributes(engine, "orders.fifo", DeduplicationScope="messageGroup", **per_group)


def test_a_kms_key_replaces_the_managed_encryption_and_the_other_way_round(engine: Engine) -> None:
    create(engine, "orders", KmsMasterKeyId="key")
    names = ("KmsMasterKeyId", "SqsManagedSseEnabled")
    assert attributes(engine, "orders", *names) == dict(zip(names, ("key", "false"), strict=True))

    set_attributes(engine, "orders", SqsManagedSseEnabled="true")
    assert attributes(engine, "orders", *names) == {"SqsManagedSseEnabled": "true"}

    both = {"KmsMasterKeyId": "key", "SqsManagedSseEnabled": "true"}
    error = refusal(lambda: set_attributes(engine, "orders", **both))
    assert error.shape == "InvalidAttributeName"


def test_policies_are_taken_away_by_the_empty_string(engine: Engine) -> None:
    _, dead = engine.queue_with_dead_letters(max_receive_count=3)
    set_attributes(engine, "orders", Policy='{"Statement": []}')
    assert attributes(engine, "orders", "RedrivePolicy") == {
        "RedrivePolicy": f'{{"deadLetterTargetArn":"{dead.identity.arn}","maxReceiveCount":3}}'
    }

    set_attributes(engine, "orders", RedrivePolicy="", Policy="")

    assert attributes(engine, "orders", "RedrivePolicy", "Policy") == {}


def test_the_time_of_the_last_change_is_known(engine: Engine) -> None:
    create(engine, "orders")
    engine.wait(5)
    set_attributes(engine, "orders", DelaySeconds="1")

    stamps = attributes(engine, "orders", "CreatedTimestamp", "LastModifiedTimestamp")

    assert list(stamps.values()) == ["1700000000", "1700000005"]


def test_an_unknown_attribute_cannot_be_asked_for(engine: Engine) -> None:
    create(engine, "orders")

    assert refusal(lambda: attributes(engine, "orders", "Nonsense")).shape == "InvalidAttributeName"


@pytest.mark.parametrize(
    ("url", "shape"),
    [
        ("", "MissingRequiredParameterException"),
        ("http://aws/000000000000/none", "QueueDoesNotExist"),
        ("none", "QueueDoesNotExist"),
        ("http://aws/111111111111/orders", "InvalidAddress"),
        ("http://aws/orders", "InvalidAddress"),
        ("http://aws/000000000000/", "InvalidAddress"),
        ("http://aws/000000000000/a/b", "InvalidAddress"),
    ],
)
def test_urls_that_lead_nowhere(engine: Engine, url: str, shape: str) -> None:
    create(engine, "orders")

    assert refusal(lambda: attributes(engine, url)).shape == shape


def test_the_host_of_a_url_does_not_matter(engine: Engine) -> None:
    create(engine, "orders")

    assert attributes(engine, "https://other:1/000000000000/orders", "DelaySeconds")


def test_regions_do_not_share_names(engine: Engine) -> None:
    create(engine, "orders", DelaySeconds="1")
    there = engine.call._replace(region="eu-west-1")
    queues.create_queue(there, requests.CreateQueue("orders", {"DelaySeconds": "2"}))

    listed = queues.list_queues(there, requests.ListQueues())

    assert listed.queue_urls == ["http://aws/000000000000/orders"]
    assert attributes(engine, "orders", "DelaySeconds") == {"DelaySeconds": "1"}


class TestListing:
    def urls(self, call: Call, **members: object) -> responses.QueueUrls:
        request = msgspec.convert(members, requests.ListQueues)
        return queues.list_queues(call, request)

    def test_by_name_and_prefix(self, engine: Engine) -> None:
        for name in ("b", "a1", "a2"):
            create(engine, name)

        def names(**members: object) -> list[str]:
            listed = self.urls(engine.call, **members)
            return [url.rsplit("/")[-1] for url in listed.queue_urls]

        assert names() == ["a1", "a2", "b"]
        assert names(QueueNamePrefix="a") == ["a1", "a2"]
        assert names(QueueNamePrefix="c") == []

    def test_in_pages_for_those_who_ask_for_pages(self, engine: Engine) -> None:
        for number in range(5):
            create(engine, f"q{number}")
        pages: list[list[str]] = []
        token = None
        while True:
            listed = self.urls(engine.call, MaxResults=2, NextToken=token)
            pages.append(listed.queue_urls)
            token = listed.next_token
            if token is None:
                break

        assert [len(page) for page in pages] == [2, 2, 1]
        assert self.urls(engine.call).next_token is None

    @pytest.mark.parametrize(
        "members", [{"MaxResults": 0}, {"MaxResults": 1001}, {"NextToken": "é"}]
    )
    def test_with_sensible_limits(self, engine: Engine, members: dict[str, object]) -> None:
        assert refusal(lambda: self.urls(engine.call, **members)).code == "InvalidParameterValue"

    def test_of_dead_letter_sources(self, engine: Engine) -> None:
        engine.queue_with_dead_letters(max_receive_count=1)

        def sources(name: str) -> list[str]:
            request = requests.ListDeadLetterSourceQueues(name)
            return queues.list_dead_letter_source_queues(engine.call, request).queue_urls

        assert sources("dead") == ["http://aws/000000000000/orders"]
        assert sources("orders") == []


class TestTags:
    def tags(self, engine: Engine) -> dict[str, str]:
        return access.list_queue_tags(engine.call, requests.QueueOnly("orders")).tags

    def test_they_are_added_replaced_and_removed(self, engine: Engine) -> None:
        queues.create_queue(engine.call, requests.CreateQueue("orders", {}, {"a": "1"}))
        access.tag_queue(engine.call, requests.TagQueue("orders", {"a": "2", "b": "3"}))
        assert self.tags(engine) == {"a": "2", "b": "3"}

        access.untag_queue(engine.call, requests.UntagQueue("orders", ["a", "none"]))
        assert self.tags(engine) == {"b": "3"}

    @pytest.mark.parametrize(
        "tags",
        [{}, {"aws:x": "1"}, {"": "1"}, {"k": "v" * 257}, dict.fromkeys(map(str, range(51)), "v")],
    )
    def test_bad_ones_are_refused(self, engine: Engine, tags: dict[str, str]) -> None:
        create(engine, "orders")

        refusal(lambda: access.tag_queue(engine.call, requests.TagQueue("orders", tags)))

        assert self.tags(engine) == {}


class TestPermissions:
    def add(self, engine: Engine, label: str, *actions: str, account: str = "1" * 12) -> None:
        request = requests.AddPermission("orders", label, [account], list(actions))
        access.add_permission(engine.call, request)

    def remove(self, engine: Engine, label: str) -> None:
        access.remove_permission(engine.call, requests.RemovePermission("orders", label))

    def test_they_make_up_the_policy_of_the_queue(self, engine: Engine) -> None:
        create(engine, "orders")
        self.add(engine, "readers", "ReceiveMessage")
        self.add(engine, "writers", "SendMessage", "GetQueueUrl")

        policy = msgspec.json.decode(attributes(engine, "orders", "Policy")["Policy"])

        assert [(s["Sid"], s["Action"]) for s in policy["Statement"]] == [
            ("readers", "SQS:ReceiveMessage"),
            ("writers", ["SQS:SendMessage", "SQS:GetQueueUrl"]),
        ]
        self.remove(engine, "readers")
        self.remove(engine, "writers")
        assert attributes(engine, "orders", "Policy") == {}

    @pytest.mark.parametrize(
        ("label", "actions", "account"),
        [
            ("readers", ["ReceiveMessage"], "1" * 12),
            ("", ["ReceiveMessage"], "1" * 12),
            ("new", [], "1" * 12),
            ("new", ["SendMessage"] * 8, "1" * 12),
            ("new", ["SendMessage"], "nobody"),
        ],
    )
    def test_bad_ones_are_refused(
        self, engine: Engine, label: str, actions: list[str], account: str
    ) -> None:
        create(engine, "orders")
        self.add(engine, "readers", "ReceiveMessage")

        refusal(lambda: self.add(engine, label, *actions, account=account))

    def test_what_is_not_there_cannot_be_removed(self, engine: Engine) -> None:
        create(engine, "orders")

        refusal(lambda: self.remove(engine, "new"))
