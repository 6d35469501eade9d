"""The page: complete in itself, escaped, and readable without a script."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import msgspec

from outboxd.core.figures import UNKNOWN
from outboxd.supervision.status.model import Trouble
from outboxd.supervision.status.page import HEADERS, page
from outboxd.supervision.status.pages import StatusPages
from outboxd.supervision.status.parts import spark_path
from tests.supervision.status_scene import a_child, a_handler, a_queue, a_status, an_outbox

HOSTILE = "<script>alert(1)</script>\"'&"


class Tags(HTMLParser):
    """Every tag with its attributes, checked to be closed in order."""

    VOID = frozenset({"meta", "link", "circle", "path"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def everything() -> str:
    return page(
        a_status(
            children=(a_child(), a_child("consumer:orders/1", "backoff", pid=None)),
            outbox=an_outbox(pending=12345),
            queues=(a_queue(visible=None, dead_letters=2, paused=True),),
            handlers=(a_handler(),),
            errors=(
                Trouble(
                    at=1.0,
                    seconds_ago=61.0,
                    level="error",
                    source="orders",
                    text="dead letter",
                    count=3,
                    look="outboxd dlq list orders",
                ),
            ),
        )
    )


def text_of(html: str) -> str:
    body = re.sub(r"<(style|script)>.*?</\1>", "", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_everything_is_told_without_a_script() -> None:
    text = text_of(everything())

    for told in (
        "Degraded It works, with 1 problem.",
        "warning consumer:orders/1 has ended, and waits for its next start",
        "note 2 dead letters wait for a person: orders outboxd dlq list orders",
        "In the outbox 12,345",
        "orders paused",
        "1 min 1 s ago orders dead letter outboxd dlq list orders 3",
        "50 MiB",
    ):
        assert told in text


def test_what_is_not_known_is_shown_as_such() -> None:
    html = everything()

    assert f'data-k="queues.0.visible" data-f="count">{UNKNOWN}<' in html
    assert f'data-k="totals.visible" data-f="count">{UNKNOWN}<' in html


def test_nothing_is_loaded_from_anywhere() -> None:
    tags = Tags(everything()).seen

    assert not [tag for tag, attributes in tags if attributes.keys() & {"src", "style", "onload"}]
    assert [a["href"] for tag, a in tags if tag == "link"] == ["data:,"]
    assert {a["href"] for tag, a in tags if tag == "a"} == {
        *("/status.json", "/metrics", "/healthz?verbose", "/readyz?verbose"),
    }
    assert "url(" not in everything()
    assert "@import" not in everything()


def test_the_policy_allows_exactly_what_is_in_the_page() -> None:
    policy = HEADERS["content-security-policy"]

    for kind, text in re.findall(r"<(style|script)>(.*?)</\1>", everything(), re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_no_text_becomes_markup_whoever_it_is_from() -> None:
    queue = a_queue(HOSTILE, blocked_by=(HOSTILE,), dead_letters=1)
    outbox = an_outbox()
    destination = msgspec.structs.replace(outbox.destinations[0], name=HOSTILE, up=False)
    html = page(
        a_status(
            broken=(HOSTILE,),
            children=(a_child(f"consumer:{HOSTILE}/1", "failed"),),
            outbox=msgspec.structs.replace(outbox, destinations=(destination,)),
            queues=(queue,),
            handlers=(a_handler(HOSTILE, HOSTILE, failed_share=1.0),),
            errors=(
                Trouble(
                    at=1.0,
                    seconds_ago=1.0,
                    level="error",
                    source=HOSTILE,
                    text=HOSTILE,
                    count=1,
                    look=HOSTILE,
                ),
            ),
        )
    )

    tags = Tags(html).seen
    assert [tag for tag, _ in tags].count("script") == 1
    assert HOSTILE not in html
    known = {"html", "head", "meta", "title", "link", "noscript", "style", "body", "header"}
    assert {"script"} | known <= {tag for tag, _ in tags}


def test_it_has_landmarks_headings_and_tables_with_headers() -> None:
    tags = Tags(everything()).seen
    names = [tag for tag, _ in tags]

    assert ("html", {"lang": "en"}) in tags
    assert [names.count(tag) for tag in ("header", "main", "footer", "h1")] == [1, 1, 1, 1]
    assert [a for tag, a in tags if a.get("aria-live")] == [
        {"role": "status", "aria-live": "polite", "id": "state"}
    ]
    scopes = [attributes.get("scope") for tag, attributes in tags if tag == "th"]
    assert set(scopes) == {"col", "row"}
    assert all(a.get("aria-label") for tag, a in tags if tag == "svg" and a.get("role") == "img")


def test_a_part_of_a_daemon_has_a_part_of_the_page() -> None:
    text = text_of(page(a_status()))

    assert "Outbox" not in text
    assert "Queues" not in text
    assert "Processes" in text
    assert "Nothing went wrong." in text


def test_a_gap_in_a_line_is_a_gap() -> None:
    assert spark_path([]) == ""
    assert spark_path([0, 2, None, 1]) == "M86 22.5h1L87 1.5h1M89 12.0h1"


def test_a_page_is_made_once_for_all_who_look_at_the_same_status() -> None:
    status = a_status()
    pages = StatusPages(lambda: status)

    assert pages.page() is pages.page()
    assert msgspec.json.decode(pages.document())["health"] == "healthy"
