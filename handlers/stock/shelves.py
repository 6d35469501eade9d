"""The rows of the stock, locked in one order by everybody: the order's own, then articles by sku.

Each lock is a statement of its own: the next one sees what was committed while it was waited for.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID, uuid4

import psycopg

from handlers.orders import UnknownOrder
from handlers.stock.standings import Move, Standing

OPEN_STANDING = """
    INSERT INTO shop.order_stock (order_id) VALUES (%s) ON CONFLICT (order_id) DO NOTHING
"""

LOCK_STANDING = "SELECT state FROM shop.order_stock WHERE order_id = %s FOR UPDATE"

FIND_WANTED = "SELECT sku, sum(quantity) FROM shop.order_items WHERE order_id = %s GROUP BY sku"

LOCK_AVAILABLE = """
    SELECT sku, on_hand - reserved
      FROM shop.stock
     WHERE sku = ANY(%s)
     ORDER BY sku
       FOR UPDATE
"""

INSERT_RESERVATION = """
    INSERT INTO shop.reservations (id, order_id, sku, quantity) VALUES (%s, %s, %s, %s)
"""

LOCK_RESERVED = """
    SELECT sku
      FROM shop.stock
     WHERE sku IN (SELECT sku FROM shop.reservations WHERE order_id = %s)
     ORDER BY sku
       FOR UPDATE
"""

MOVE_STANDING = "UPDATE shop.order_stock SET state = %(state)s WHERE order_id = %(order_id)s"

MOVE_RESERVATIONS = "UPDATE shop.reservations SET state = %(state)s WHERE order_id = %(order_id)s"

MOVE_PIECES = """
    UPDATE shop.stock
       SET on_hand = on_hand + %(on_hand)s * reservations.quantity,
           reserved = reserved + %(reserved)s * reservations.quantity
      FROM shop.reservations
     WHERE reservations.order_id = %(order_id)s
       AND stock.sku = reservations.sku
"""


def lock_standing(tx: psycopg.Connection, order_id: UUID) -> Standing:
    """How the order stands, with nobody else changing it. Raises `UnknownOrder`."""
    try:
        tx.execute(OPEN_STANDING, (order_id,))
    except psycopg.errors.ForeignKeyViolation as error:
        raise UnknownOrder(f"there is no order {order_id}") from error
    ((state,),) = tx.execute(LOCK_STANDING, (order_id,)).fetchall()
    return Standing(state)


def lock_known_standing(tx: psycopg.Connection, order_id: UUID) -> Standing | None:
    """The same of an order that an event has told of; None of another."""
    row = tx.execute(LOCK_STANDING, (order_id,)).fetchone()
    return None if row is None else Standing(row[0])


def wanted_by(tx: psycopg.Connection, order_id: UUID) -> dict[str, int]:
    """How many of which article the order has, all of its lines together."""
    return dict(tx.execute(FIND_WANTED, (order_id,)).fetchall())


def lock_available(tx: psycopg.Connection, skus: Iterable[str]) -> dict[str, int]:
    """How many of these articles are on the shelf and not set aside."""
    return dict(tx.execute(LOCK_AVAILABLE, (list(skus),)).fetchall())


def add_reservations(
    tx: psycopg.Connection, order_id: UUID, wanted: Mapping[str, int]
) -> list[tuple[UUID, str, int]]:
    """Id, sku and quantity of what is new, by sku; `carry_out` counts it."""
    rows = [(uuid4(), sku, quantity) for sku, quantity in sorted(wanted.items())]
    with tx.cursor() as cursor:
        cursor.executemany(
            INSERT_RESERVATION,
            [(reservation_id, order_id, sku, quantity) for reservation_id, sku, quantity in rows],
        )
    return rows


def carry_out(tx: psycopg.Connection, order_id: UUID, move: Move) -> None:
    """Bring the order to its new standing, and its pieces with it."""
    parameters = {
        "order_id": order_id,
        "state": move.to.value,
        "on_hand": move.on_hand,
        "reserved": move.reserved,
    }
    tx.execute(LOCK_RESERVED, (order_id,))
    for statement in (MOVE_STANDING, MOVE_RESERVATIONS, MOVE_PIECES):
        tx.execute(statement, parameters)
