"""What the warehouse tells the shop."""

import psycopg

from handlers.prices import UnknownProduct

ADD_PIECES = """
    INSERT INTO shop.stock (sku, on_hand)
    SELECT sku, %(quantity)s
      FROM shop.products
     WHERE sku = %(sku)s
    ON CONFLICT (sku) DO UPDATE SET on_hand = stock.on_hand + excluded.on_hand
    RETURNING sku
"""


def restock(connection: psycopg.Connection, sku: str, quantity: int) -> None:
    """So many more of an article are on the shelf. Orders that were rejected stay so until somebody
    calls `reconsider` for those that shall have them.

    Whoever brings in several in one transaction does so by sku, the order in which everybody locks.
    Raises `UnknownProduct`, and ValueError unless the quantity is above 0.
    """
    if quantity <= 0:
        raise ValueError(f"quantity: {quantity} pieces of {sku} cannot be brought in")
    parameters = {"sku": sku, "quantity": quantity}
    if connection.execute(ADD_PIECES, parameters).fetchone() is None:
        raise UnknownProduct(f"not in the catalogue: {sku}")
