"""What a line of the log says, how often, and what it never says."""

import io
import json
import logging
import logging.config
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from outboxd.adapters.logging import configure_logging
from outboxd.adapters.logging.output import Output
from outboxd.adapters.logging.structlog_alone import structlog
from outboxd.core.log_facts import CALL_FACTS, EVENT_LOGGER, HANDLER_LOGGER, Payload
from outboxd.core.settings import DatabaseSettings, LoggingSettings, Settings

log = logging.getLogger("outboxd.test_logging")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    for logger in root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.disabled = False
    structlog.reset_defaults()


def configured(
    stream: io.StringIO | None = None,
    process: str = "consumer:orders/1",
    environ: dict[str, str] | None = None,
    **wanted: Any,
) -> io.StringIO:
    stream = stream if stream is not None else io.StringIO()
    settings = Settings(
        database=DatabaseSettings(url="postgresql://app:hunter2@db/shop"),
        logging=LoggingSettings(**wanted),
    )
    configure_logging(settings, process, environ=environ or {}, stream=stream)
    return stream


def written(stream: io.StringIO) -> str:
    for handler in logging.getLogger().handlers:
        handler.flush()
    return stream.getvalue()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written(stream).splitlines()]


def test_a_line_says_who_wrote_it_and_its_facts_beside_its_text() -> None:
    stream = configured()
    log.warning("receive failed", extra={"queue": "orders", "seconds": 1.5, "error": None})

    (line,) = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "warning",
        "process": "consumer:orders/1",
        "child": "consumer:orders/1",
        "logger": "outboxd.test_logging",
        "message": "receive failed",
        "queue": "orders",
        "seconds": 1.5,
        "error": None,
    }


def test_a_line_of_the_supervisor_names_the_child_that_it_is_about() -> None:
    stream = configured(process="supervisor")
    log.info("child changed state", extra={"child": "relay"})
    log.info("ready")

    about, alone = lines(stream)
    assert (about["process"], about["child"]) == ("supervisor", "relay")
    assert "child" not in alone


def test_lines_within_a_call_name_the_event_whoever_writes_them() -> None:
    stream = configured()
    facts = {"handler": "orders.ship", "event_id": "e", "attempt": 2, "trace_id": "t"}
    token = CALL_FACTS.set(lambda: facts)
    logging.getLogger("requests").warning("retrying %s", "GET")
    structlog.get_logger("shop").warning("parcel is heavy", kilograms=30)
    CALL_FACTS.reset(token)
    log.info("after")

    library, handler, after = lines(stream)
    assert library.items() >= {**facts, "message": "retrying GET"}.items()
    assert handler.items() >= {**facts, "message": "parcel is heavy", "kilograms": 30}.items()
    assert "handler" not in after


def test_a_traceback_is_a_fact_of_the_line() -> None:
    stream = configured()
    try:
        raise OSError("no such file")
    except OSError:
        log.exception("bad")
        structlog.get_logger("shop").exception("bad too")

    ours, theirs = lines(stream)
    assert ours["exception"].startswith("Traceback (most recent call last):")
    assert ours["exception"].endswith("OSError: no such file")
    assert theirs["exception"] == ours["exception"]


def test_facts_that_no_json_has_are_told_as_text_and_nothing_breaks() -> None:
    class Silent:
        def __str__(self) -> str:
            raise RuntimeError("no")

    deep: list[Any] = []
    deep.append(deep)
    stream = configured()
    log.info(
        "odd",
        extra={
            "silent": Silent(),
            "half": "\ud800",
            "nan": float("nan"),
            "deep": deep,
            "big": 1 << 80,
            "bytes": b"\xff",
            "by number": {1: {2}},
            "level": "mine",
        },
    )

    (line,) = lines(stream)
    assert line["silent"] == "<Silent without a text: RuntimeError>"
    assert line["by number"] == {"1": [2]}
    assert (line["big"], line["bytes"]) == (1 << 80, "b'\\xff'")
    assert (line["level"], line["level_"]) == ("info", "mine")


def test_a_long_text_loses_its_middle_after_its_secrets() -> None:
    stream = configured()
    log.info("long", extra={"text": "a" * 4090 + " hunter2 " + "z" * 5000})

    (line,) = lines(stream)
    assert len(line["text"]) < 8300
    assert line["text"].startswith("aaa")
    assert line["text"].endswith("zzz")
    assert "characters left out" in line["text"]
    assert "hunt" not in line["text"]


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_secret_is_written(form: str) -> None:
    stream = configured(format=form, environ={"AWS_SESSION_TOKEN": "hunter2-of-aws"})
    try:
        raise OSError("cannot reach postgresql://app:hunter2@db/shop")
    except OSError:
        log.exception("hunter2 failed", extra={"password": "other", "why": ["hunter2-of-aws"]})
    log.info("sent", extra={"headers": {"Authorization": "other", "Accept": "*/*"}})
    logging.getLogger("requests").warning("token=%s", "other")

    assert "hunter2" not in written(stream)
    assert "other" not in written(stream)
    assert "*/*" in written(stream)


@pytest.mark.parametrize("payloads", [False, True])
def test_data_of_events_is_written_only_where_it_is_asked_for(payloads: bool) -> None:
    stream = configured(payloads=payloads)
    log.warning("handler failed", extra={"payload": Payload(msgspec.Raw(b'{"name":"Ada"}'))})
    logging.getLogger(HANDLER_LOGGER).info("mine", extra={"payload": "as I like"})

    ours, theirs = lines(stream)
    assert ours.get("payload") == ('{"name":"Ada"}' if payloads else None)
    assert theirs["payload"] == "as I like"


@pytest.mark.parametrize(
    ("form", "stream", "as_text"),
    [
        ("auto", io.StringIO(), False),
        ("auto", Terminal(), True),
        ("json", Terminal(), False),
        ("text", io.StringIO(), True),
    ],
)
def test_a_person_at_a_terminal_gets_text(form: str, stream: io.StringIO, as_text: bool) -> None:
    configured(stream, format=form)
    log.warning("destination paused", extra={"destination": "sqs:orders", "error": "not there"})

    text = written(stream)
    assert text.startswith("{") is not as_text
    coloured = "\x1b[" in text
    assert coloured is (as_text and stream.isatty())
    if as_text and not coloured:
        assert re.sub(r"\s+", " ", text[12:].strip()) == (
            "[warning ] destination paused [consumer:orders/1] "
            "destination=sqs:orders error='not there'"
        )


def test_no_colours_where_they_are_not_wanted() -> None:
    stream = configured(Terminal(), environ={"NO_COLOR": "1"})
    log.warning("plain")

    assert "\x1b[" not in written(stream)


def test_what_repeats_is_counted_and_told_at_the_end() -> None:
    stream = configured(repeats_per_minute=3)
    for number in range(10):
        log.warning("receive failed", extra={"queue": "orders", "number": number})
        log.warning("receive failed", extra={"queue": "stock"})
    configured()  # as a reload does

    orders = [line for line in lines(stream) if line["queue"] == "orders"]
    assert [(line["number"], line.get("repeated")) for line in orders] == [
        (0, None),
        (1, None),
        (2, None),
        (9, 7),
    ]


def test_a_log_that_was_replaced_leaves_no_thread_and_can_still_be_written_to() -> None:
    """Each reload replaces it; and `logging.basicConfig(force=True)` closes what it takes away."""
    stream = io.StringIO()
    output = Output(stream, repeats_per_minute=0)
    before = threading.active_count()
    for number in range(3):
        output.handle(logging.makeLogRecord({"name": "outboxd", "msg": f"line {number}"}))
        output.close()
        with_none_left = time.monotonic() + 10
        while threading.active_count() > before and time.monotonic() < with_none_left:
            time.sleep(0.001)
        assert threading.active_count() == before

    assert stream.getvalue() == "line 0\nline 1\nline 2\n"


def test_what_repeats_is_told_when_its_minute_is_over_though_nothing_follows() -> None:
    told = threading.Event()

    class Watched(io.StringIO):
        def write(self, text: str) -> int:
            if '"repeated":2' in text:
                told.set()
            return super().write(text)

    output = Output(Watched(), repeats_per_minute=1, window_seconds=0.05)
    output.setFormatter(
        logging.Formatter('%(message)s "repeated":%(repeated)s', defaults={"repeated": 0})
    )
    logging.getLogger().addHandler(output)
    for _ in range(3):
        log.error("down")

    assert told.wait(10)


@pytest.mark.parametrize("name", [HANDLER_LOGGER, EVENT_LOGGER, "handlers.stock"])
def test_lines_of_the_application_are_all_written(name: str) -> None:
    stream = configured(repeats_per_minute=1)
    for _ in range(5):
        logging.getLogger(name).info("sold")

    assert len(lines(stream)) == 5


@pytest.mark.parametrize("error", [BrokenPipeError, OSError(28, "No space left on device")])
def test_a_standard_output_that_takes_nothing_is_no_traceback_for_each_line(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    class Deaf(io.StringIO):
        def write(self, text: str) -> int:
            raise error

    stream = configured(Deaf())
    log.error("nobody reads")
    written(stream)
    assert capsys.readouterr().err == ""


def test_a_line_that_cannot_be_made_is_told_without_its_secrets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = configured()
    try:
        raise RuntimeError("hunter2")
    except RuntimeError:
        log.error("%d of them", "hunter2")

    assert written(stream) == ""
    told = capsys.readouterr().err
    assert told.startswith(
        "outboxd: a line of the log could not be made (TypeError): logger outbox"
    )
    assert told.count("\n") == 1


def test_a_pipe_that_nobody_reads_keeps_nobody_waiting_and_what_it_cost_is_told() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "w") as stream:
        configured(stream, repeats_per_minute=0)  # type: ignore[arg-type]
        for number in range(3000):
            log.info("line", extra={"number": number, "text": "x" * 4000})
        os.set_blocking(reading, False)
        told: list[dict[str, Any]] = []
        rest = b""
        while not any("dropped" in line for line in told):
            rest += reader.read(1 << 20) or b""
            *whole, rest = rest.split(b"\n")
            told += [json.loads(line) for line in whole]
        log.info("over")
        while told[-1]["message"] != "over":
            rest += reader.read(1 << 20) or b""
            *whole, rest = rest.split(b"\n")
            told += [json.loads(line) for line in whole]

    numbers = [line["number"] for line in told if "number" in line]
    assert numbers == sorted(numbers)
    assert len(numbers) + sum(line.get("dropped", 0) for line in told) == 3000
    assert len(numbers) > 900


def test_libraries_do_not_tell_the_bodies_of_requests_at_level_debug() -> None:
    stream = configured(level="debug")
    logging.getLogger("botocore.endpoint").debug("body")
    log.debug("ours")

    assert [line["message"] for line in lines(stream)] == ["ours"]


def test_structlog_does_not_bring_rich_along() -> None:
    code = "import sys, outboxd.adapters.logging; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def set_up_by_a_library() -> None:
    logging.basicConfig(force=True, level=logging.ERROR)


def set_up_by_a_framework() -> None:
    logging.config.dictConfig({"version": 1, "root": {"level": "CRITICAL"}})


def switched_off() -> None:
    logging.disable(logging.CRITICAL)


@pytest.mark.parametrize("change", [set_up_by_a_library, set_up_by_a_framework, switched_off])
def test_a_module_of_a_handler_does_not_take_the_log_away(
    change: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    stream = io.StringIO()
    settings = Settings(database=DatabaseSettings(url="postgresql://app:hunter2@db/shop"))
    configured = configure_logging(settings, "consumer:orders/1", environ={}, stream=stream)
    elsewhere = logging.NullHandler()
    change()
    logging.getLogger().addHandler(elsewhere)
    configured.restore()
    log.info("hunter2 is not told")

    told = [line["message"] for line in lines(stream)]
    assert told[-1] == "*** is not told"
    assert elsewhere in logging.getLogger().handlers
    assert capsys.readouterr().err == ""


def test_a_log_that_nobody_has_touched_is_restored_in_silence() -> None:
    stream = io.StringIO()
    configure_logging(Settings(), "consumer:orders/1", environ={}, stream=stream).restore()

    assert lines(stream) == []
