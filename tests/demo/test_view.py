"""What a person sees: the same facts in a picture and in lines."""

import io
from pathlib import Path
from unittest.mock import create_autospec

import msgspec
import pytest
from rich.console import Console
from rich.live import Live

from outboxd.core.settings import Settings
from outboxd.demo.counting import Count, Outbox, QueueDepth
from outboxd.demo.flows import Flow
from outboxd.demo.killer import Kills
from outboxd.demo.metrics import ChildView
from outboxd.demo.observation import Observation
from outboxd.demo.partners import Partners
from outboxd.demo.picture import LivePicture
from outboxd.demo.queues import Queues
from outboxd.demo.s3_and_ses import S3AndSes
from outboxd.demo.scene import Scene
from outboxd.demo.speeds import MEASURED, Speed
from outboxd.demo.storefront import Storefront
from outboxd.demo.supervisor import Supervisor
from outboxd.demo.view import LineView, viewing

QUEUES = (
    "payment-events",
    "inventory-events",
    "shipping-events",
    "notification-events",
    "analytics-events",
    "invoice-jobs",
    "jobs",
)

FLOWS = {name: Flow(10_000, 9_998) for name in MEASURED.values()}

NOW = Observation(
    at=0.0,
    counting_seconds=0.0,
    count=Count(
        orders=10,
        events_committed=20,
        events_published=18,
        events_missing=0,
        events_unexpected=0,
        effects_expected=30,
        effects_missing=4,
        effects_duplicated=0,
        wrong_shelves=0,
        refunds=0,
        dead_letters=7,
        outbox_backlog=2,
        messages_left=6,
        flows={
            **FLOWS,
            "invoices_stored": Flow(10_000, 9_998),
            "push_sent": Flow(10_000, 9_999, repeated=1_000),
        },
        analytics_total=Flow(1, 1),
    ),
    outbox=Outbox(committed=20, published=18, backlog=2, oldest_seconds=1.25),
    queues={
        **dict.fromkeys(QUEUES, QueueDepth(visible=12_345)),
        "jobs": QueueDepth(visible=3, in_flight=2, delayed=1),
    },
    dead_letters={**dict.fromkeys(QUEUES, QueueDepth()), "jobs": QueueDepth(visible=7)},
    speeds={
        name: Speed(p50_seconds=0.123, p99_seconds=99.999, rate=24.8) for name in MEASURED.values()
    },
    children=(
        *(
            ChildView(
                name=f"consumer:{queue}/1",
                state="ready",
                restarts=0,
                rss_bytes=42_000_000,
                pid=4_194_304,
            )
            for queue in QUEUES[:-1]
        ),
        ChildView(name="consumer:jobs/1", state="starting", restarts=1, rss_bytes=9, pid=8),
        ChildView(name="extender", state="ready", restarts=0, rss_bytes=0, pid=4_194_304),
        ChildView(name="relay", state="backoff", restarts=3, rss_bytes=42_000_000),
    ),
)
KILLS = Kills({"relay": 2}, awaited=("consumer:jobs/1", "consumer:payment-events/1"))


@pytest.mark.parametrize(
    ("kills", "line"),
    [
        (None, "10 orders, 26/30 effects, 2 in the outbox, 6 in the queues, 4 restarts"),
        (
            Kills({"relay": 1}),
            "10 orders, 26/30 effects, 2 in the outbox, 6 in the queues, 1 kill, 4 restarts",
        ),
        (
            Kills({"relay": 2}, awaited=("extender",)),
            "10 orders, 26/30 effects, 2 in the outbox, 6 in the queues, 2 kills, 4 restarts; "
            "all work is done; still to be killed once: extender",
        ),
    ],
)
def test_lines_tell_how_far_it_is(kills: Kills | None, line: str) -> None:
    stream = io.StringIO()

    LineView(stream).show(NOW, kills)

    assert stream.getvalue() == f"{line}\n"


def test_lines_do_not_tell_the_same_count_twice() -> None:
    stream = io.StringIO()
    view = LineView(stream)

    view.show(NOW, None)
    view.show(msgspec.structs.replace(NOW, queues={}), None)
    assert len(stream.getvalue().splitlines()) == 1

    view.show(msgspec.structs.replace(NOW, at=1.0), None)
    assert len(stream.getvalue().splitlines()) == 2


SMALL = (80, 24)
LARGE = (200, 60)


def drawn(kills: Kills | None, size: tuple[int, int] = LARGE) -> list[str]:
    """The lines of a picture in a terminal of that size, were it as high as it has to be."""
    stream = io.StringIO()
    columns, rows = size
    console = Console(file=stream, width=columns, height=rows, force_terminal=False)
    with Live(console=console, auto_refresh=False) as live:
        picture = LivePicture(live)
        picture.opened(a_scene())
        picture.show(NOW, kills)
        lines = console.render_lines(live.get_renderable(), console.options, pad=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


def a_scene() -> Scene:
    supervisor = create_autospec(Supervisor, instance=True, address="127.0.0.1:65535")
    folder = Path("/tmp/outboxd-demo-abcdefgh")
    return Scene(
        dsn="",
        settings=create_autospec(Settings, instance=True),
        configuration=folder / "outboxd.toml",
        log=folder / "outboxd.log",
        queues=create_autospec(Queues, instance=True),
        mail=folder / "mail",
        partners=create_autospec(Partners, instance=True),
        s3_and_ses=create_autospec(S3AndSes, instance=True),
        storefront=Storefront("http://127.0.0.1:65534", "secret"),
        supervisor=supervisor,
    )


def test_the_picture_has_children_with_their_queues_and_flows_with_their_speeds() -> None:
    rows = [line.split() for line in drawn(None)]

    assert ["relay", "-", "backoff", "3", "-"] in rows
    assert ["jobs/1", "8", "starting", "1", "-", "4", "2", "7"] in rows
    assert ["payment-events/1", "4194304", "ready", "0", "42", "MB", "12345", "0", "0"] in rows
    assert ["orders", "paid", "9998", "10000", "24.8", "0.12", "s", "100.00", "s"] in rows
    assert ["push", "sent", "9999", "10000", "1000", "24.8", "0.12", "s", "100.00", "s"] in rows
    assert ["invoices", "stored", "9998", "10000"] in rows


def test_the_picture_has_totals_and_says_what_must_not_be() -> None:
    text = "\n".join(drawn(None))

    assert "10 orders   events 18/20   effects 26/30   outbox 2 (1.2 s)   dead letters 7\n" in text
    assert "duplicates" not in text


def test_the_picture_says_where_to_look() -> None:
    text = "\n".join(drawn(None))

    assert "http://127.0.0.1:65535/  /metrics  /healthz?verbose  /readyz" in text
    assert "/tmp/outboxd-demo-abcdefgh/outboxd.toml" in text
    assert "/tmp/outboxd-demo-abcdefgh/outboxd.log" in text


def test_the_demos_own_kills_are_shown_when_it_kills() -> None:
    rows = [line.split() for line in drawn(KILLS)]

    assert ["relay", "-", "backoff", "2", "3", "-"] in rows
    assert "kills" not in "\n".join(drawn(None))


@pytest.mark.parametrize("kills", [None, KILLS])
def test_a_child_that_starts_has_no_size_yet(kills: Kills | None) -> None:
    words = [line.split() for line in drawn(kills) if line]
    starting = next(row for row in words if row[0] == "jobs/1")
    unknown = next(row for row in words if row[0] == "extender")

    assert "MB" not in starting
    assert unknown[-1] == "-"


@pytest.mark.parametrize("kills", [None, KILLS])
def test_the_picture_fits_a_small_terminal(kills: Kills | None) -> None:
    """Nothing is broken into two lines or cut: a large terminal has the same, and room besides."""
    small, large = drawn(kills, SMALL), drawn(kills, LARGE)

    assert len(small) <= 24
    assert set(small[:-1]) <= set(large)
    assert len(large) > len(small)


def test_a_stream_that_is_no_terminal_gets_lines(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream, viewing(stream) as view:
        view.say("hello")

    assert (tmp_path / "log").read_text() == "hello\n"
