"""Lists that come in pages, with a token that names the last item of the page before."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def page(
    items: Sequence[Item], key: Callable[[Item], str], size: int, token: str | None
) -> tuple[list[Item], str | None]:
    """Up to `size` items after the one `token` names, and the token of the next page, if any.

    `items` are in the order of `key`. Raises ValueError for a token that is none.
    """
    after = b64decode(token, validate=True).decode() if token else ""
    rest = [item for item in items if key(item) > after]
    shown = rest[:size]
    return shown, sealed(key(shown[-1])) if len(rest) > size else None


def sealed(key: str) -> str:
    """The token of the page after the item with this key."""
    return b64encode(key.encode()).decode()
