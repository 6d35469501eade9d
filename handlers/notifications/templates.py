"""The texts, by name. They say what is true whichever handler comes first, and tell no address."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from handlers.money import amount
from handlers.notifications.orders import Order
from outboxd import Reject

ORDER_CONFIRMATION = "order_confirmation"
PAYMENT_SUCCESS = "payment_success"
SHIPPED = "shipped"


class Text(Struct, frozen=True):
    """What the customer reads; `subject` is one line."""

    subject: str
    body: str


def order_confirmation(order: Order) -> Text:
    total = amount(order.total, order.currency)
    return Text(
        "We have your order",
        f"Thank you!\n\nWe have your order {order.order_id}. It costs {total}.\n",
    )


def payment_success(order: Order) -> Text:
    return Text(
        "Your payment has arrived",
        f"Thank you!\n\nYour payment for order {order.order_id} has arrived.\n",
    )


def shipped(order: Order) -> Text:
    number = order.tracking_number
    follow = "" if number is None else f"\n\nIts tracking number is {number}."
    return Text("Your order is on its way", f"Your order {order.order_id} is on its way.{follow}\n")


TEMPLATES: Mapping[str, Callable[[Order], Text]] = {
    ORDER_CONFIRMATION: order_confirmation,
    PAYMENT_SUCCESS: payment_success,
    SHIPPED: shipped,
}


def render(template: str, order: Order) -> Text:
    """The text of this template. Raises Reject for a name that is none."""
    check_template(template)
    return TEMPLATES[template](order)


def check_template(template: str) -> None:
    """Raises Reject for a name that is none."""
    if template not in TEMPLATES:
        raise Reject(unknown("template", template, TEMPLATES))


def unknown(kind: str, name: str, known: Mapping[str, object]) -> str:
    """What is wrong with a name, and what it could have been."""
    return f"there is no {kind} {name[:60]!r}: expected one of {', '.join(sorted(known))}"
