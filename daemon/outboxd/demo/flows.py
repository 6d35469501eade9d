"""What has become of the orders, flow by flow: expected by formula, counted where it ended.

Nothing is asked of the daemon: the shop's tables, the mailboxes, the bucket and the partners' own
books are counted.
"""

from collections.abc import Mapping

import psycopg
from msgspec import Struct
from psycopg.rows import class_row

from outboxd.demo.mail import Mail
from outboxd.demo.partners.book import Counts, Service

EVENTS_PER_ORDER = 8
"""order.created, payment.succeeded, three jobs, shipment.requested, two notification.requested."""

EVENTS_PER_LINE = 1
"""stock.reserved"""

EFFECTS_OF_PAYMENT = 15
"""The most that one event may still cause: a payment of three lines, and all that follows."""

# From the orders, so that an event which is not even in the outbox is missed as well.
FACTS = """
    SELECT (SELECT count(*) FROM shop.orders) AS orders,
           (SELECT count(*) FROM shop.orders WHERE status = 'paid') AS paid,
           (SELECT coalesce(sum(total_minor), 0)::bigint FROM shop.orders) AS total,
           (SELECT count(*) FROM shop.order_items) AS lines,
           (SELECT count(*) FROM shop.reservations
             WHERE state IN ('reserved', 'sold')) AS reserved,
           (SELECT count(*) FROM shop.reservations WHERE state = 'sold') AS sold,
           (SELECT count(*) FROM shop.shipments) AS shipments,
           (SELECT coalesce(sum(orders), 0)::bigint FROM shop.daily_sales) AS sales,
           (SELECT coalesce(sum(total_minor), 0)::bigint FROM shop.daily_sales) AS sales_total
"""

LEDGER = """
    SELECT handler, count(*), count(DISTINCT event_id) FROM shop.effects GROUP BY handler
"""


class Flow(Struct, frozen=True):
    """How often something has to have happened, how often it did, and how often it was repeated
    under the same key, as external effects may be."""

    expected: int
    got: int
    repeated: int = 0

    @property
    def missing(self) -> int:
        return max(0, self.expected - self.got)

    @property
    def too_many(self) -> int:
        return max(0, self.got - self.expected)


class Facts(Struct, frozen=True, kw_only=True):
    """What the shop's tables say, by the names of the query."""

    orders: int
    paid: int
    total: int
    lines: int
    reserved: int
    sold: int
    shipments: int
    sales: int
    sales_total: int


class Elsewhere(Struct, frozen=True, kw_only=True):
    """What others have of the shop: mail by SMTP and by SES, documents, the partners' books."""

    payment_mail: Mail
    confirmation_mail: Mail
    documents: int
    partners: Mapping[Service, Counts]


class Flows(Struct, frozen=True, kw_only=True):
    """All flows by name, and what does not fit into any.

    `duplicated` are effects that happened more than once for one event, or twice under different
    keys; `analytics_total` is money, in the minor unit.
    """

    orders: int
    lines: int
    by_name: dict[str, Flow]
    analytics_total: Flow
    duplicated: int

    @property
    def effects_expected(self) -> int:
        return sum(flow.expected for flow in self.by_name.values())

    @property
    def effects_missing(self) -> int:
        return sum(flow.missing for flow in self.by_name.values())

    @property
    def events_expected(self) -> int:
        """Of orders and all that follows from them."""
        return self.orders * EVENTS_PER_ORDER + self.lines * EVENTS_PER_LINE


def count_flows(connection: psycopg.Connection, elsewhere: Elsewhere) -> Flows:
    """Count everything now. `connection` is in autocommit mode."""
    # Orders last: what is done meanwhile must not look like more than there is to do.
    ledger = {name: (rows, events) for name, rows, events in connection.execute(LEDGER)}
    with connection.cursor(row_factory=class_row(Facts)) as cursor:
        (facts,) = cursor.execute(FACTS).fetchall()
    orders, lines = facts.orders, facts.lines
    courier = elsewhere.partners[Service.COURIER]
    by_name = {
        "orders_paid": Flow(orders, facts.paid),
        "payments_processed": Flow(orders, _events(ledger, "payment.process")),
        "stock_reserved": Flow(lines, facts.reserved),
        "stock_sold": Flow(lines, facts.sold),
        "emails_sent": _mailed(orders, elsewhere.payment_mail),
        "confirmations_sent": _mailed(orders, elsewhere.confirmation_mail),
        "whatsapp_sent": _accepted(orders, elsewhere.partners[Service.WHATSAPP]),
        "push_sent": _accepted(orders, elsewhere.partners[Service.PUSH]),
        "shipments_requested": Flow(orders, facts.shipments, courier.repeated),
        "invoices_stored": Flow(orders, elsewhere.documents),
        "sales_counted": Flow(orders, facts.sales),
    }
    duplicated = [
        *(rows - events for rows, events in ledger.values()),
        *(flow.too_many for flow in by_name.values()),
        elsewhere.payment_mail.different_for_one_order,
        elsewhere.confirmation_mail.different_for_one_order,
        max(0, courier.accepted - orders),
    ]
    return Flows(
        orders=orders,
        lines=lines,
        by_name=by_name,
        analytics_total=Flow(facts.total, facts.sales_total),
        duplicated=sum(duplicated),
    )


def _events(ledger: Mapping[str, tuple[int, int]], handler: str) -> int:
    return ledger.get(handler, (0, 0))[1]


def _mailed(orders: int, mail: Mail) -> Flow:
    return Flow(orders, len(mail.orders), mail.repeated)


def _accepted(orders: int, counts: Counts) -> Flow:
    return Flow(orders, counts.accepted, counts.repeated)
