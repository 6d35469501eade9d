"""Lists that come in pages."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import TypeVar

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
    after = _opened(token) if token else ""
    rest = [item for item in items if key(item) > after]
    size = PAGE_LIMIT if limit is None else limit
    shown = rest[:size]
    more = limit is not None and len(rest) > size
    return shown, _sealed(key(shown[-1])) if more else None


def _sealed(key: str) -> str:
    return b64encode(key.encode()).decode()


def _opened(token: str) -> str:
    try:
        return b64decode(token, validate=True).decode()
    except ValueError:
        raise invalid_parameter("Invalid or expired next token.") from None
