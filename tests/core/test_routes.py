import pytest

from outboxd.core.routes import REMEMBERED_ANSWERS, Route, RouteTable
from outboxd.core.settings import RouteSettings

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
