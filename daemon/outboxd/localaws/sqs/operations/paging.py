"""Lists that come in pages."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from outboxd.localaws import paging
from outboxd.localaws.sqs.errors import invalid_parameter
from outboxd.localaws.sqs.validation import check_range

Item = TypeVar("Item")

PAGE_LIMIT = 1000


def page(
    items: Sequence[Item], key: Callable[[Item], str], limit: int | None, token: str | None
) -> tuple[list[Item], str | None]:
    """The items after the one `token` names, in key order, and the token of the next page.

    Only a caller who set a limit is given a token; without one the list ends at 1,000.
    """
    check_range(1 if limit is None else limit, "MaxResults", 1, PAGE_LIMIT)
    size = PAGE_LIMIT if limit is None else limit
    try:
        shown, next_token = paging.page(items, key, size, token)
    except ValueError:
        raise invalid_parameter("Invalid or expired next token.") from None
    return shown, None if limit is None else next_token
