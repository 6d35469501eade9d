"""Names of destinations mean what their tables say, and a wrong one is told in its own terms."""

from typing import Any

import pytest

from outboxd.core.destinations import (
    EventBridgeTarget,
    LogTarget,
    MemoryTarget,
    SnsTarget,
    SqsTarget,
    Target,
    destination_problem,
    target_of,
)
from outboxd.core.errors import SettingsError
from outboxd.core.settings import (
    DestinationsSettings,
    EventBridgeSettings,
    QueueSettings,
    Settings,
    SnsSettings,
)

ARN = "arn:aws:sns:us-east-1:111122223333:theirs.fifo"

SETTINGS = Settings(
    queues={
        "orders": QueueSettings(queue_name="prod-orders", fair_groups=True),
        "ordered.fifo": QueueSettings(),
    },
    destinations=DestinationsSettings(
        sns={
            "order-topic": SnsSettings(),
            "renamed": SnsSettings(topic_name="prod-topic", fair_groups=True),
            "theirs": SnsSettings(arn=ARN),
        },
        eventbridge={
            "shop": EventBridgeSettings(source="shop.orders"),
            "other": EventBridgeSettings(source="shop", bus_name="prod-bus"),
        },
    ),
)


@pytest.mark.parametrize(
    ("destination", "target"),
    [
        ("sqs:orders", SqsTarget("prod-orders", fair_groups=True)),
        ("sqs:ordered.fifo", SqsTarget("ordered.fifo")),
        ("sqs:elsewhere", SqsTarget("elsewhere")),
        ("sns:order-topic", SnsTarget("order-topic")),
        ("sns:renamed", SnsTarget("prod-topic", fair_groups=True)),
        ("sns:theirs", SnsTarget("theirs.fifo", ARN)),
        ("sns:without-a-table", SnsTarget("without-a-table")),
        ("eventbridge:shop", EventBridgeTarget("shop", "shop.orders")),
        ("eventbridge:other", EventBridgeTarget("prod-bus", "shop")),
        ("log:dev", LogTarget("dev")),
        ("memory:test", MemoryTarget("test")),
    ],
)
def test_a_name_means_what_its_table_says(destination: str, target: Target) -> None:
    assert target_of(destination, SETTINGS) == target


def test_a_name_that_ends_in_fifo_is_a_fifo_destination() -> None:
    fifo = {
        destination: getattr(target_of(destination, SETTINGS), "fifo", False)
        for destination in ("sqs:orders", "sqs:ordered.fifo", "sns:theirs", "sns:order-topic")
    }

    assert [name for name, is_fifo in fifo.items() if is_fifo] == ["sqs:ordered.fifo", "sns:theirs"]


@pytest.mark.parametrize("destination", ["orders", "sqs:", "kafka:orders", "", ":orders"])
def test_anything_else_is_no_destination(destination: str) -> None:
    with pytest.raises(SettingsError, match="unknown destination; expected"):
        target_of(destination, SETTINGS)


@pytest.mark.parametrize(
    ("destination", "words"),
    [
        ("orders", 'unknown destination; .*did you mean "sqs:orders"'),
        ("sqs:ordres", r'there is no \[queues.ordres\]; did you mean "sqs:orders"'),
        ("sns:order-topc", r'no \[destinations.sns.order-topc\]; did you mean "order-topic"'),
        ("sns:a b", "this is no name of a topic"),
        ("eventbridge:shp", r'no \[destinations.eventbridge.shp\], .*did you mean "shop"'),
        ("log:a b", 'expected 1 to 80 letters.* behind "log:"'),
        ("memory:" + "x" * 81, 'behind "memory:"'),
    ],
)
def test_a_wrong_name_is_told_with_what_was_probably_meant(destination: str, words: str) -> None:
    problem: Any = destination_problem(destination, SETTINGS)

    with pytest.raises(ValueError, match=words):
        raise ValueError(problem)


@pytest.mark.parametrize(
    "destination",
    ["sqs:orders", "sns:order-topic", "sns:quite-another", "eventbridge:shop", "log:x"],
)
def test_a_right_name_is_no_problem(destination: str) -> None:
    assert destination_problem(destination, SETTINGS) is None
