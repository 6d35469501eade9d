"""Lists of SNS, which come in pages of a hundred."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from outboxd.localaws.paging import page
from outboxd.localaws.sns.errors import invalid_parameter

Item = TypeVar("Item")

PAGE_SIZE = 100


def listed(
    items: Sequence[Item], key: Callable[[Item], str], token: str | None
) -> tuple[list[Item], str | None]:
    """The page after `token`, and the token of the next one. Raises InvalidParameter."""
    try:
        return page(items, key, PAGE_SIZE, token)
    except ValueError:
        raise invalid_parameter("NextToken Reason: Invalid or expired next token") from None
