import pytest

from outboxd.core.errors import SettingsError
from outboxd.core.routes import REMEMBERED_ANSWERS, Route, RouteTable, sqs_queue_of
from outboxd.core.settings import QueueSettings, RouteSettings, Settings

ROUTES = (
    RouteSettings(events="order.placed", to=("sqs:fast",)),
    RouteSettings(events="order.*", to=("sqs:orders", "sqs:audit", "sqs:orders")),
    RouteSettings(events="*", aggregate_type="customer", to=("sqs:crm",), envelope="job"),
)


@pytest.mark.parametrize(
    ("event_type", "aggregate_type", "route"),
    [
        ("order.placed", "order", Route(("sqs:fast",), "event")),
        ("order.paid", "order", Route(("sqs:orders", "sqs:audit"), "event")),
        ("order.paid", "customer", Route(("sqs:orders", "sqs:audit"), "event")),
        ("signed.up", "customer", Route(("sqs:crm",), "job")),
        ("signed.up", "lead", None),
        ("ORDER.placed", "order", None),
    ],
)
def test_the_first_matching_route_wins(
    event_type: str, aggregate_type: str, route: Route | None
) -> None:
    table = RouteTable(ROUTES)

    assert table.find(event_type, aggregate_type) == route
    assert table.find(event_type, aggregate_type) == route


def test_destinations_are_named_once() -> None:
    assert RouteTable(ROUTES).destinations == ("sqs:fast", "sqs:orders", "sqs:audit", "sqs:crm")


def test_made_up_event_types_do_not_fill_the_memory() -> None:
    table = RouteTable(ROUTES)

    for number in range(3 * REMEMBERED_ANSWERS):
        assert table.find(f"order.{number}", "order") is not None

    assert len(table._answers) <= REMEMBERED_ANSWERS


def test_a_destination_is_a_table_of_queues_or_the_name_of_a_queue() -> None:
    settings = Settings(queues={"orders": QueueSettings(queue_name="prod-orders")})

    assert sqs_queue_of("sqs:orders", settings) == "prod-orders"
    assert sqs_queue_of("sqs:elsewhere", settings) == "elsewhere"


@pytest.mark.parametrize("destination", ["orders", "sqs:", "kafka:orders"])
def test_anything_else_is_no_destination(destination: str) -> None:
    with pytest.raises(SettingsError, match="is no destination"):
        sqs_queue_of(destination, Settings())
