"""Look, send, mark: what every notification goes through, in this order."""

from uuid import UUID

from handlers.connections import STORE_SECONDS
from handlers.notifications.channels import Channel, Notification
from handlers.notifications.orders import Order, Orders
from handlers.notifications.templates import check_template, render
from outboxd import Context, Reject


class Delivery:
    """Tells the customer of an order once for each channel and template.

    The mark comes after the sending: a crash in between repeats the message under the same key,
    and a mark before it would lose the message. The key is that of the order and the kind, so
    whatever is sent twice is recognised. No transaction is open while it is sent.
    """

    def __init__(self, database_url: str) -> None:
        self._orders = Orders(database_url)

    def tell(
        self,
        order_id: UUID,
        template: str,
        channel_name: str,
        channel: Channel,
        context: Context,
        customer_id: UUID | None = None,
    ) -> None:
        """Raises Reject for an unknown template, and if the order is another customer's."""
        check_template(template)
        kind = f"{channel_name}:{template}"
        order = self._orders.find(order_id, kind)
        facts = {"order_id": str(order_id), "notification": kind}
        if order is None:
            # Not a dead letter: orders may be erased, and nobody is left to be told.
            context.logger.warning("order not found, nobody told", extra=facts)
            return
        _check_customer(order, customer_id)
        if order.told:
            context.logger.info("customer told before", extra=facts)
            return
        # Not the event's key: two events may ask for the same at once, and neither sees a mark.
        notification = Notification(
            order, template, render(template, order), key=f"{kind}:{order_id}"
        )
        channel.send(notification, context.seconds_left() - STORE_SECONDS)
        self._orders.mark(order_id, kind)

    def close(self) -> None:
        """Close its connections."""
        self._orders.close()


def _check_customer(order: Order, customer_id: UUID | None) -> None:
    """One customer must not be told of what another has ordered."""
    if customer_id is not None and customer_id != order.customer_id:
        raise Reject(f"order {order.order_id} is not of customer {customer_id}: nobody was told")
