"""What is allowed, but may not be meant, is told without being a problem."""

import pytest

from outboxd.core.notes import notes
from outboxd.core.settings import (
    DestinationsSettings,
    EventBridgeSettings,
    HandlerSettings,
    QueueSettings,
    RelaySettings,
    RouteSettings,
    RuleSettings,
    Settings,
    SnsSettings,
    SubscriptionSettings,
)


def route(events: str, queue: str, aggregate_type: str = "*") -> RouteSettings:
    return RouteSettings(events=events, to=(f"sqs:{queue}",), aggregate_type=aggregate_type)


def queue(event: str, name: str) -> QueueSettings:
    return QueueSettings(handlers=(HandlerSettings(event=event, handler="shop:f", name=name),))


def handling(event: str, *routes: RouteSettings) -> Settings:
    """A queue "orders" with a handler of this event, and one that somebody else feeds."""
    return Settings(
        relay=RelaySettings(routes=(*routes, route("rest.*", "other"))),
        queues={"orders": queue(event, "ship"), "other": queue("*", "rest")},
    )


@pytest.mark.parametrize(
    "settings",
    [
        handling("order.created", route("order.*", "orders")),
        handling("order.*", route("order.created", "orders")),
        handling("*", route("order.created", "orders")),
        # The first route takes only some of these events away.
        handling("order.*", route("order.created", "other"), route("order.*", "orders")),
        handling("order.created", route("order.*", "other", "cart"), route("order.*", "orders")),
    ],
)
def test_what_some_route_publishes_is_not_noted(settings: Settings) -> None:
    assert notes(settings) == []


@pytest.mark.parametrize(
    "settings",
    [
        handling("order.created"),
        handling("order.created", route("order.paid", "orders")),
        handling("order.created", route("order.*", "other"), route("order.created", "orders")),
        handling("order.*", route("*", "other"), route("order.*", "orders")),
    ],
)
def test_a_handler_of_what_no_route_publishes_to_its_queue_is_noted(settings: Settings) -> None:
    (note,) = notes(settings)

    assert note.startswith("[[queues.orders.handlers]] #1 (ship): no route here publishes ")


def test_a_daemon_that_only_consumes_is_fed_by_others() -> None:
    assert notes(Settings(queues={"orders": queue("order.created", "ship")})) == []


def test_a_queue_of_dead_letters_is_fed_by_another_queue() -> None:
    settings = Settings(
        relay=RelaySettings(routes=(route("*", "orders"),)),
        queues={"orders": queue("*", "ship"), "orders-dlq": queue("order.*", "look")},
    )

    assert notes(settings) == []


def test_a_queue_behind_a_topic_or_a_bus_gets_what_is_routed_there() -> None:
    topic = SnsSettings(subscriptions=(SubscriptionSettings(queue="orders"),))
    rule = RuleSettings(name="orders", to=("sqs:orders",))
    destinations = DestinationsSettings(
        sns={"topic": topic},
        eventbridge={"shop": EventBridgeSettings(source="shop", rules=(rule,))},
    )
    for to in ("sns:topic", "eventbridge:shop"):
        settings = Settings(
            relay=RelaySettings(routes=(RouteSettings(events="*", to=(to,)),)),
            destinations=destinations,
            queues={"orders": queue("order.created", "ship")},
        )

        assert notes(settings) == []
