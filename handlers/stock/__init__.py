"""Stock: set aside when an order is made, taken when it is paid, given back when it is cancelled.

The three events come in any order and any number of times; `standings` decides what each means.
"""

from handlers.stock.handling import COMMIT, RELEASE, RESERVE, commit, release, reserve
from handlers.stock.setting_aside import reconsider
from handlers.stock.warehouse import restock

__all__ = [
    "COMMIT",
    "RELEASE",
    "RESERVE",
    "commit",
    "reconsider",
    "release",
    "reserve",
    "restock",
]
