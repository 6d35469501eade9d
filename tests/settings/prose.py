"""From the comments of a TOML file, which are plain text, to Markdown."""

import re
from collections.abc import Mapping, Sequence

_VALUE = r'(?:"[^"]*"|\[[^\]]*\]|true|false|\d[\d.]*)'
_PARTS = re.compile(
    r"(?P<marked>`[^`]*`)"
    r'|docs/(?P<page>[\w-]+)\.md(?:, "(?P<heading>[^"]*)")?'
    rf"|(?P<setting>\b[a-z][a-z_.]* = {_VALUE})"
    r"|(?P<table>\[\[?[a-z][^\[\]]*\]\]?)"
    r'|(?P<quoted>"[^"]*")'
    r"|(?P<name>\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b)"
    r"|(?P<special>[<>*_\\])"
)
_ENTITIES = {"<": "&lt;", ">": "&gt;"}


def as_one_text(lines: Sequence[str]) -> str:
    """The lines of a comment as running text."""
    return " ".join(lines)


def as_markdown(text: str, links: Mapping[str, str]) -> str:
    """Tables, settings and values as code, pages of docs/ as links, all else as it is read.

    `links` has what certain tables lead to, e.g. {"[http]": "#http"}.
    """

    def written(match: re.Match[str]) -> str:
        if match["marked"]:
            return match[0]
        if match["page"]:
            return _page(match["page"], match["heading"])
        if match["special"]:
            return _ENTITIES.get(match[0], f"\\{match[0]}")
        if match["table"] and match[0] in links:
            return f"[`{match[0]}`]({links[match[0]]})"
        return f"`{match[0]}`"

    return _PARTS.sub(written, text)


def anchor(heading: str) -> str:
    """Where a link to a heading leads to within its page, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _page(name: str, heading: str | None) -> str:
    if heading is None:
        return f"[{name}.md]({name}.md)"
    return f'[{name}.md, "{heading}"]({name}.md#{anchor(heading)})'
