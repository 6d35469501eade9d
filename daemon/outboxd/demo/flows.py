"""What has become of the orders, flow by flow: expected by formula, counted where it ended.

Nothing is asked of the daemon: the shop's tables, the mailboxes, the bucket and the partners' own
books are counted. Things are counted by order wherever they have one, so that one order's second
parcel does not stand for another's first.
"""

from collections.abc import Mapping

import psycopg
from msgspec import Struct
from psycopg.rows import class_row

from outboxd.demo.database import PLENTY
from outboxd.demo.mail import Mail
from outboxd.demo.partners.book import Counts, Service
from outboxd.demo.s3_and_ses import Documents

EFFECTS_OF_PAYMENT = 15
"""The most that one event may still cause: a payment of three lines, and all that follows."""

# From the orders, so that an event which is not even in the outbox is missed as well.
FACTS = """
    SELECT (SELECT count(*) FROM shop.orders) AS orders,
           (SELECT count(*) FROM shop.orders WHERE status = 'paid') AS paid,
           (SELECT coalesce(sum(total_minor), 0)::bigint FROM shop.orders) AS total,
           (SELECT count(*) FROM shop.order_items) AS lines,
           (SELECT count(*) FROM shop.payments) AS payments,
           (SELECT count(*) FROM shop.refunds) AS refunds,
           (SELECT count(*) FROM shop.reservations
             WHERE state IN ('reserved', 'sold')) AS reserved,
           (SELECT count(*) FROM shop.reservations WHERE state = 'sold') AS sold,
           (SELECT count(*) FROM shop.shipments WHERE tracking_number IS NOT NULL) AS shipments,
           (SELECT coalesce(sum(orders), 0)::bigint FROM shop.daily_sales) AS sales,
           (SELECT coalesce(sum(total_minor), 0)::bigint FROM shop.daily_sales) AS sales_total
"""

LEDGER = """
    SELECT handler, count(*), count(DISTINCT event_id) FROM shop.effects GROUP BY handler
"""

# What the shelves say, held against every single reservation.
WRONG_SHELVES = """
    SELECT count(*)
      FROM shop.stock
      LEFT JOIN (SELECT sku,
                        sum(quantity) FILTER (WHERE state = 'sold') AS sold,
                        sum(quantity) FILTER (WHERE state = 'reserved') AS reserved
                   FROM shop.reservations
                  GROUP BY sku) AS taken USING (sku)
     WHERE stock.on_hand <> %(plenty)s - coalesce(taken.sold, 0)
        OR stock.reserved <> coalesce(taken.reserved, 0)
"""


class Flow(Struct, frozen=True):
    """How often something has to have happened, how often it did, and how often it was repeated
    under the same key, as external effects may be: up to `explained` times, which is known when
    the run is over."""

    expected: int
    got: int
    repeated: int = 0
    explained: int = 0

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
    payments: int
    refunds: int
    reserved: int
    sold: int
    shipments: int
    sales: int
    sales_total: int


class Elsewhere(Struct, frozen=True, kw_only=True):
    """What others have of the shop: mail by SMTP and by SES, documents, the partners' books."""

    payment_mail: Mail
    confirmation_mail: Mail
    documents: Documents
    partners: Mapping[Service, Counts]


class Flows(Struct, frozen=True, kw_only=True):
    """All flows by name, and what does not fit into any.

    `duplicated` are effects that happened more than once for one event or order. `wrong_shelves`
    are articles whose number is not what was set aside and sold, and `refunds` are owed to nobody
    in a shop where each order is paid once. `analytics_total` is money, in the minor unit.
    """

    orders: int
    by_name: dict[str, Flow]
    analytics_total: Flow
    events_expected: dict[str, int]
    duplicated: int
    wrong_shelves: int
    refunds: int

    @property
    def effects_expected(self) -> int:
        return sum(flow.expected for flow in self.by_name.values())

    @property
    def effects_missing(self) -> int:
        return sum(flow.missing for flow in self.by_name.values())


def count_flows(connection: psycopg.Connection, elsewhere: Elsewhere) -> Flows:
    """Count everything now. `connection` is in autocommit mode."""
    # Orders last: what is done meanwhile must not look like more than there is to do.
    ledger = {name: (rows, events) for name, rows, events in connection.execute(LEDGER)}
    ((wrong_shelves,),) = connection.execute(WRONG_SHELVES, {"plenty": PLENTY}).fetchall()
    with connection.cursor(row_factory=class_row(Facts)) as cursor:
        (facts,) = cursor.execute(FACTS).fetchall()
    by_name = _by_name(facts, ledger, elsewhere)
    duplicated = [
        *(rows - events for rows, events in ledger.values()),
        *(flow.too_many for flow in by_name.values()),
        max(0, facts.payments - facts.orders),
        *(each.accepted - each.orders for each in elsewhere.partners.values()),
        elsewhere.documents.stored - elsewhere.documents.orders,
        elsewhere.payment_mail.different_for_one_order,
        elsewhere.confirmation_mail.different_for_one_order,
    ]
    return Flows(
        orders=facts.orders,
        by_name=by_name,
        analytics_total=Flow(facts.total, facts.sales_total),
        events_expected=_events_expected(facts),
        duplicated=sum(duplicated),
        wrong_shelves=wrong_shelves,
        refunds=facts.refunds,
    )


def _by_name(
    facts: Facts, ledger: Mapping[str, tuple[int, int]], elsewhere: Elsewhere
) -> dict[str, Flow]:
    orders, lines = facts.orders, facts.lines
    _, processed = ledger.get("payment.process", (0, 0))
    courier = elsewhere.partners[Service.COURIER]
    return {
        "orders_paid": Flow(orders, facts.paid),
        "payments_processed": Flow(orders, processed),
        "stock_reserved": Flow(lines, facts.reserved),
        "stock_sold": Flow(lines, facts.sold),
        "emails_sent": _mailed(orders, elsewhere.payment_mail),
        "confirmations_sent": _mailed(orders, elsewhere.confirmation_mail),
        "whatsapp_sent": _accepted(orders, elsewhere.partners[Service.WHATSAPP]),
        "push_sent": _accepted(orders, elsewhere.partners[Service.PUSH]),
        # Both know of the parcel, or it is not asked for.
        "shipments_requested": Flow(orders, min(facts.shipments, courier.orders), courier.repeated),
        "invoices_stored": Flow(orders, elsewhere.documents.orders),
        "sales_counted": Flow(orders, facts.sales),
    }


def _events_expected(facts: Facts) -> dict[str, int]:
    """By type: of orders, and of all that follows from them."""
    orders = facts.orders
    return {
        "order.created": orders,
        "payment.succeeded": orders,
        "process_payment": orders,
        "stock.reserved": facts.lines,
        "generate_invoice_pdf": orders,
        "send_confirmation_email": orders,
        "shipment.requested": orders,
        "notification.requested": 2 * orders,  # WhatsApp after the payment, push with the parcel
    }


def _mailed(orders: int, mail: Mail) -> Flow:
    return Flow(orders, len(mail.orders), mail.repeated)


def _accepted(orders: int, counts: Counts) -> Flow:
    return Flow(orders, counts.orders, counts.repeated)
