"""What a person sees: the same facts in a picture and in lines."""

import io
from pathlib import Path

from rich.console import Console
from rich.live import Live

from outboxd.demo.counting import Count, Outbox, QueueDepth
from outboxd.demo.metrics import ChildView
from outboxd.demo.observation import Flow, Observation
from outboxd.demo.picture import LivePicture
from outboxd.demo.view import LineView, viewing

NOW = Observation(
    at=0.0,
    count=Count(
        orders=10,
        events_committed=20,
        events_published=18,
        effects_expected=30,
        effects_missing=4,
        effects_duplicated=0,
        emails_repeated=0,
        dead_letters=7,
        outbox_backlog=2,
        messages_left=6,
    ),
    outbox=Outbox(committed=20, published=18, backlog=2, oldest_seconds=1.25),
    queues={"order-events": QueueDepth(visible=3, in_flight=2, delayed=1)},
    dead_letters={"order-events": QueueDepth(visible=7)},
    flows=(Flow(handler="payment.mark_paid", p50_seconds=0.0123, p99_seconds=0.5, rate=24.8),),
    children=(ChildView(name="relay", state="backoff", restarts=3, rss_bytes=42_000_000),),
)


def test_lines_tell_how_far_it_is() -> None:
    stream = io.StringIO()

    LineView(stream).show(NOW, {"relay": 2})

    assert stream.getvalue() == (
        "10 orders, 26/30 effects, 2 in the outbox, 6 in the queues, 2 kills, 3 restarts\n"
    )


def test_the_picture_has_children_queues_and_speeds() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=110, force_terminal=False)

    with Live(console=console, auto_refresh=False) as live:
        LivePicture(live).show(NOW, {"relay": 2})

    rows = [line.split() for line in stream.getvalue().splitlines()]
    assert ["relay", "backoff", "2", "3", "42", "MB"] in rows
    assert ["order-events", "3", "2", "1", "7"] in rows
    assert ["payment.mark_paid", "24.8", "12", "ms", "500", "ms"] in rows
    assert "26/30" in stream.getvalue()
    assert "dead letters 7" in stream.getvalue()
    assert "duplicated" not in stream.getvalue()


def test_a_stream_that_is_no_terminal_gets_lines(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream, viewing(stream) as view:
        view.say("hello")

    assert (tmp_path / "log").read_text() == "hello\n"
