"""Lists of EventBridge, which come in pages of up to a hundred."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from outboxd.localaws.events.errors import constraint, validation
from outboxd.localaws.paging import page

Item = TypeVar("Item")

PAGE_LIMIT = 100


def listed(
    items: Sequence[Item], key: Callable[[Item], str], limit: int | None, token: str | None
) -> tuple[list[Item], str | None]:
    """The page after `token`, and the token of the next one. Raises ValidationException."""
    size = PAGE_LIMIT if limit is None else limit
    if not 1 <= size <= PAGE_LIMIT:
        raise constraint(size, "limit", f"Member must have value between 1 and {PAGE_LIMIT}")
    try:
        return page(items, key, size, token)
    except ValueError:
        raise validation("NextToken is not valid.") from None
