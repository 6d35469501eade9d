"""The status page in a browser: alone, and of a running daemon."""

import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio.from_thread import start_blocking_portal

from outboxd.demo.http import get
from outboxd.supervision.http import bind, create_app, serve
from outboxd.supervision.status.model import (
    Destination,
    OutboxHistory,
    QueueHistory,
    Status,
    Trouble,
)
from outboxd.supervision.status.pages import StatusPages
from tests.supervision.status_scene import a_child, a_handler, a_queue, a_status, an_outbox
from tests.supervision.test_http import Facts, render
from tests.system.chromium import Browser, chromium
from tests.system.scene import Scene, handler

pytestmark = [pytest.mark.packages, pytest.mark.timeout(300)]

REFRESHED = "document.body.dataset.refreshed !== undefined"

PASSWORD = "hunter2-of-the-database"

HOSTILE = "<img src=x onerror=alert(1)>\"'&"

HISTORY = QueueHistory(
    visible=(0.0, 12.0, None, 3.0), handled_per_second=(0.004, 0.5, 7.25), p95_seconds=(None, 0.2)
)

EVERYTHING = a_status(
    children=(
        a_child(rss_bytes=None, up_seconds=None, heartbeat_age_seconds=None),
        a_child("consumer:orders/1", "backoff", restarts=12, failures=3, rss_bytes=1_500_000_000),
        a_child("consumer:orders/2", "failed", up_seconds=90_061.0),
    ),
    outbox=an_outbox(
        pending=12_345,
        oldest_seconds=3725.0,
        blocked_aggregates=2,
        destinations=(
            Destination(name="sqs:orders", up=False, published_per_second=0.0),
            Destination(name=f"sns:{HOSTILE}", up=None, published_per_second=None),
            Destination(name="eventbridge:shop", up=True, published_per_second=1234.5),
        ),
        history=OutboxHistory(
            pending=(1.0, 2.0), oldest_seconds=(0.25, 3725.0), published_per_second=()
        ),
    ),
    queues=(
        a_queue(HOSTILE, visible=None, paused=True, blocked_by=("database",), history=HISTORY),
        a_queue("a-queue-with-a-name-that-is-as-long-as-sqs-allows-" + "x" * 30, dead_letters=7),
    ),
    handlers=(
        a_handler(HOSTILE, HOSTILE, failed_share=0.004, handled_per_second=0.004),
        a_handler("ship", failed_share=0.5, handled_per_second=99.96, p95_seconds=0.0343),
    ),
    errors=(
        Trouble(
            at=1.0,
            seconds_ago=61.0,
            level="error",
            source="orders",
            text=HOSTILE * 8,
            count=1234,
            look="outboxd dlq list orders",
        ),
        Trouble(at=1.0, seconds_ago=0.2, level="warning", source="relay", text="x" * 300, count=1),
    ),
)

LEAST_CONTRAST = """
(() => {
  const part = value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) =>
    0.2126 * part(r / 255) + 0.7152 * part(g / 255) + 0.0722 * part(b / 255);
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  let least = [99, ""];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
    const [one, two] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (contrast < least[0]) least = [contrast, walker.currentNode.data];
  }
  return least;
})()
"""


class Shown:
    """A daemon that has the status which a test gives it."""

    def __init__(self, status: Status) -> None:
        self.status = status
        self.socket = bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/"

    async def serve(self) -> None:
        await serve(create_app(render, Facts(), StatusPages(lambda: self.status)), self.socket)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def shown() -> Iterator[Shown]:
    shown = Shown(EVERYTHING)
    with start_blocking_portal() as portal:
        serving = portal.start_task_soon(_until_cancelled, shown)
        yield shown
        serving.cancel()


async def _until_cancelled(shown: Shown) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shown.serve)


def what_is_seen(browser: Browser) -> list[str]:
    """Texts, marks and lines, in the order of the page."""
    return list(
        browser.ask(
            "[...document.body.querySelectorAll('*')].filter(each => each.tagName !== 'SCRIPT')"
            ".map(each => [each.tagName, each.className.baseVal ?? each.className,"
            " each.dataset.v, each.getAttribute('aria-label'), each.getAttribute('d'),"
            " each.dataset.head, each.children.length ? '' : each.textContent].join(' '))"
        )
    )


def test_the_script_shows_exactly_what_the_page_came_with(browser: Browser, shown: Shown) -> None:
    browser.look(1280, scripts=False)
    browser.open(shown.url)
    came = what_is_seen(browser)
    assert not browser.ask(REFRESHED)

    browser.look(1280)
    browser.open(shown.url)
    browser.until(REFRESHED)

    assert what_is_seen(browser) == came
    assert browser.requested == [shown.url, f"{shown.url}status.json"]
    assert browser.complaints == []


def test_what_changes_is_shown_without_loading_the_page_again(
    browser: Browser, shown: Shown
) -> None:
    shown.status = a_status(queues=(a_queue(visible=3),))
    browser.look(1280)
    browser.open(shown.url)
    browser.until(REFRESHED)
    browser.ask("window.same = true")
    assert browser.ask("document.body.dataset.health") == "healthy"

    shown.status = a_status(
        children=(a_child(state="backoff"),), queues=(a_queue(visible=4, dead_letters=1),)
    )
    browser.until("document.getElementById('word').textContent === 'Degraded'")

    assert browser.ask("document.querySelector('[data-k=\"queues.0.visible\"]').textContent") == "4"
    assert browser.ask("document.querySelectorAll('#problems li').length") == 2
    assert browser.ask("document.title") == "Degraded - outboxd on shop-1"
    assert browser.ask("window.same")

    shown.status = a_status(queues=(a_queue(), a_queue("invoices")))  # a reload brought a queue
    browser.until("document.body.textContent.includes('invoices')")
    assert not browser.ask("window.same")


def test_a_daemon_that_is_gone_does_not_look_healthy(browser: Browser) -> None:
    shown = Shown(a_status())
    browser.look(1280)
    with start_blocking_portal() as portal:
        serving = portal.start_task_soon(_until_cancelled, shown)
        browser.open(shown.url)
        browser.until(REFRESHED)
        serving.cancel()
    browser.until("document.body.dataset.health === 'lost'")

    assert browser.ask("document.getElementById('word').textContent") == "No answer"
    assert browser.ask("document.getElementById('summary').textContent").startswith("What is below")


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(
    browser: Browser, shown: Shown, tmp_path: Path, width: int, scheme: str
) -> None:
    browser.look(width, scheme="dark" if scheme == "dark" else "light")
    browser.open(shown.url)
    browser.until(REFRESHED)

    assert browser.ask("document.documentElement.scrollWidth") <= width
    contrast, text = browser.ask(LEAST_CONTRAST)
    assert contrast >= 4.5, text
    browser.screenshot(tmp_path / f"status-{width}-{scheme}.png")
    assert (tmp_path / f"status-{width}-{scheme}.png").stat().st_size > 10_000


def test_no_text_becomes_markup(browser: Browser, shown: Shown) -> None:
    browser.look(1280)
    browser.open(shown.url)
    browser.until(REFRESHED)

    assert browser.ask("document.querySelectorAll('img').length") == 0
    assert browser.ask("document.body.textContent.includes('<img src=x')")


def test_on_a_phone_tables_are_still_tables_to_a_screen_reader(
    browser: Browser, shown: Shown
) -> None:
    browser.look(390)
    browser.open(shown.url)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node.get("ignored")]

    for role in ("banner", "main", "contentinfo", "navigation", "status", "table", "columnheader"):
        assert role in roles
    assert roles.count("rowheader") >= len(EVERYTHING.children) + len(EVERYTHING.queues)


def test_a_running_daemon_is_healthy_and_tells_no_password(scene: Scene, browser: Browser) -> None:
    # This server trusts its socket, so that it may be anything.
    scene.dsn += f" password={PASSWORD}"
    scene.configure(handler("note"))
    with scene.daemon() as supervisor:
        address = supervisor.address
        browser.look(1280)
        browser.open(f"http://{address}/")
        browser.until("document.getElementById('word').textContent === 'Healthy'")
        answers = [get(address, path) for path in ("/", "/status.json")]
    bodies = [answer[1] for answer in answers if answer is not None]

    assert len(bodies) == 2
    assert not any(PASSWORD in body for body in bodies)
    assert msgspec.convert(json.loads(bodies[1]), Status).children[0].state == "ready"
