"""Prices are what the catalogue says at the moment of the checkout, and what the customer saw."""

from collections.abc import Iterable

import psycopg
from msgspec import Struct

# FOR SHARE: a price that is being changed is waited for, and stays until the order is committed.
# By sku, so that two checkouts and a price list that is brought in never wait for each other.
LOCK_PRICES = """
    SELECT sku, price_minor
      FROM shop.products
     WHERE sku = ANY(%(skus)s)
       AND currency = %(currency)s
     ORDER BY sku
       FOR SHARE
"""


class UnknownProduct(Exception):
    """An article is not for sale, or not in this currency; the customer has to leave it out."""


class NewPrice(Struct, frozen=True, kw_only=True):
    """What an article costs now, in the minor unit, and what the customer saw."""

    sku: str
    seen: int
    current: int


class PriceChanged(Exception):
    """Articles cost something else by now: show the customer the new `prices`, and ask again."""

    def __init__(self, prices: tuple[NewPrice, ...]) -> None:
        self.prices = prices
        changes = ", ".join(f"{new.sku} costs {new.current}, not {new.seen}" for new in prices)
        super().__init__(changes)


def check_prices(
    connection: psycopg.Connection, currency: str, seen: Iterable[tuple[str, int]]
) -> None:
    """Lock the prices of these articles, in the caller's transaction, and compare them with those
    that the customer saw. Raises `UnknownProduct` and `PriceChanged`."""
    offers = sorted(set(seen))
    parameters = {"skus": [sku for sku, _ in offers], "currency": currency}
    current: dict[str, int] = dict(connection.execute(LOCK_PRICES, parameters).fetchall())
    unknown = [sku for sku, _ in offers if sku not in current]
    if unknown:
        raise UnknownProduct(f"not for sale in {currency}: {', '.join(unknown)}")
    changed = tuple(
        NewPrice(sku=sku, seen=price, current=current[sku])
        for sku, price in offers
        if current[sku] != price
    )
    if changed:
        raise PriceChanged(changed)
