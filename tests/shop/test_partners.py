"""The partners that are played, and what the shop makes of what partners answer."""

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import NoReturn
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec
import pytest

from handlers.partners import (
    LONGEST_WAIT_SECONDS,
    Partner,
    PartnerAway,
    PartnerOptions,
    refusal,
    wait_seconds,
)
from outboxd import Reject, RetryLater
from outboxd.demo.errors import DemoError
from outboxd.demo.neighbours import neighbour
from outboxd.demo.partners import Partners
from outboxd.demo.partners.book import Service
from outboxd.demo.partners.faults import Fault
from tests.shop.parties import statuses

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ORDER = str(uuid4())
TOKEN = "s3cret-token"


@pytest.fixture
def courier(partners: Partners) -> Iterator[Partner]:
    options = PartnerOptions(base_url=partners.base_url(Service.COURIER), token=TOKEN)
    with closing(Partner("the courier", options)) as partner:
        yield partner


def pick_up(courier: Partner, key: str, order: str = ORDER, seconds_left: float = 10.0) -> bytes:
    return courier.post("/pickups", {"order_id": order}, key=key, seconds_left=seconds_left)


def a_key() -> str:
    return f"{uuid4()}:shipping.request_pickup"


# The partners that are played


def test_a_repeated_request_gets_the_answer_of_the_first(
    partners: Partners, courier: Partner
) -> None:
    key, before = a_key(), partners.counts()[Service.COURIER]

    first, again = pick_up(courier, key), pick_up(courier, key)

    assert first == again
    assert statuses(partners, Service.COURIER, key) == [201, 200]
    (accepted,) = (each for each in partners.accepted(Service.COURIER) if each.key == key)
    assert (accepted.content, accepted.repeated) == ({"order_id": ORDER}, 1)
    after = partners.counts()[Service.COURIER]
    assert (after.requests, after.accepted, after.repeated) == (
        before.requests + 2,
        before.accepted + 1,
        before.repeated + 1,
    )


def test_a_key_that_is_used_for_something_else_is_refused(courier: Partner) -> None:
    key = a_key()
    pick_up(courier, key)

    with pytest.raises(Reject, match=r"the courier refused this \(422: this Idempotency-Key"):
        pick_up(courier, key, order=str(uuid4()))


def test_a_request_without_a_key_or_with_nonsense_is_refused(
    partners: Partners, courier: Partner
) -> None:
    with pytest.raises(Reject, match=r"422: .*unknown field `order`"):
        courier.post("/pickups", {"order": 7}, key=a_key(), seconds_left=10)
    with pytest.raises(Reject, match="400: the header Idempotency-Key is missing"):
        pick_up(courier, "")


def test_a_request_whose_answer_is_lost_was_accepted(partners: Partners, courier: Partner) -> None:
    key = a_key()
    with (
        partners.fault(Fault(service="courier", drop=True, when="after", count=1)),
        pytest.raises(PartnerAway, match=r"the courier at http://.* did not answer"),
    ):
        pick_up(courier, key)

    pick_up(courier, key)

    assert statuses(partners, Service.COURIER, key) == [0, 200]


def test_a_connection_that_is_cut_before_leaves_nothing(
    partners: Partners, courier: Partner
) -> None:
    key = a_key()
    with partners.fault(Fault(drop=True)), pytest.raises(PartnerAway):
        pick_up(courier, key)

    pick_up(courier, key)

    assert statuses(partners, Service.COURIER, key) == [0, 201]


def test_a_share_of_requests_is_met_and_counted(partners: Partners, courier: Partner) -> None:
    with partners.fault(Fault(service="courier", status=503, share=0.5, seed=7)) as number:
        refused = 0
        for _ in range(40):
            try:
                pick_up(courier, a_key())
            except PartnerAway:
                refused += 1
        (fault,) = partners.faults()

    assert (fault.id, fault.fired) == (number, refused)
    assert 5 < refused < 35


def test_a_fault_of_one_service_spares_the_others(partners: Partners, courier: Partner) -> None:
    with partners.fault(Fault(service="push", status=500)):
        pick_up(courier, a_key())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"status": 99}', "200"),
        (b'{"status": 500, "drop": true}', "cuts the connection"),
        (b"{}", "nothing would happen"),
        (b'{"statsu": 500}', "statsu"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(partners: Partners, body: bytes, words: str) -> None:
    with closing(http.client.HTTPConnection(urlsplit(partners.endpoint).netloc)) as connection:
        connection.request("POST", "/_partners/faults", body)
        response = connection.getresponse()
        assert response.status == 400
        assert words in json.loads(response.read())["detail"]


def test_the_partners_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from outboxd.demo.partners import running_partners\n"
        "with running_partners(pathlib.Path(sys.argv[1])) as partners:\n"
        "    print(partners.endpoint, flush=True)\n"
        "    input()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        address = urlsplit(parent.stdout.readline().strip()).netloc
        parent.kill()
        host, _, port = address.partition(":")
        while _listens(host, int(port)):
            pass


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port)).close()
    except ConnectionError:
        return False
    return True


def test_partners_that_cannot_start_say_why(tmp_path: Path, partners: Partners) -> None:
    port = str(urlsplit(partners.endpoint).port)
    with (
        pytest.raises(DemoError, match=r"(?s)outboxd.demo.partners did not start: .*cannot listen"),
        neighbour("outboxd.demo.partners", ["--port", port], tmp_path / "log"),
    ):
        pass


# What the shop makes of answers


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_a_2xx_is_a_success(status: int) -> None:
    assert refusal("it", status, None, "") is None


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_a_4xx_is_for_ever_and_told_in_the_partners_words(status: int) -> None:
    refused = refusal("the courier", status, "3", "no such street")

    assert isinstance(refused, Reject)
    assert str(refused) == f"the courier refused this ({status}: no such street)"


@pytest.mark.parametrize("status", [301, 408, 409, 425, 429, 500, 502, 503, 504])
def test_everything_else_is_for_now(status: int) -> None:
    assert isinstance(refusal("it", status, None, "x"), PartnerAway)


@pytest.mark.parametrize("status", [429, 503])
def test_a_partner_may_say_how_long_to_wait(status: int) -> None:
    refused = refusal("it", status, "7", "busy", lambda: NOW)

    assert isinstance(refused, RetryLater)
    assert refused.after_seconds == 7
    assert "busy" in str(refused)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("30", 30.0),
        ("0", 1.0),
        ("999999999999", LONGEST_WAIT_SECONDS),
        ("Sun, 01 Mar 2026 12:00:42 GMT", 42.0),
        ("Sun, 01 Mar 2026 12:00:42 -0000", 42.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 1.0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert wait_seconds(header, NOW) == seconds


def test_a_partner_that_is_too_slow_is_left(partners: Partners, courier: Partner) -> None:
    with (
        partners.fault(Fault(delay_seconds=3000)),
        pytest.raises(PartnerAway, match=r"the courier at http://.* had not answered after 0.2 s"),
    ):
        pick_up(courier, a_key(), seconds_left=0.2)


@contextmanager
def setting(event: Event) -> Iterator[None]:
    """At the end, come what may."""
    try:
        yield
    finally:
        event.set()


@contextmanager
def trickling(beginning: bytes, more: bytes) -> Iterator[Partner]:
    """A partner that begins to answer and never ends, without ever being silent; when the block is
    left, it has noticed that nobody listens any more."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def trickle() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                connection.sendall(beginning)
                while True:
                    connection.sendall(more)
                    time.sleep(0.01)

        thread = Thread(target=trickle)
        thread.start()
        options = PartnerOptions(base_url=f"http://127.0.0.1:{server.getsockname()[1]}")
        with closing(Partner("it", options)) as partner:
            yield partner
        thread.join()


@pytest.mark.parametrize(
    ("beginning", "more"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X: 1\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n", b"x"),
    ],
    ids=["headers", "body"],
)
def test_an_answer_that_trickles_in_is_not_waited_for(beginning: bytes, more: bytes) -> None:
    with (
        trickling(beginning, more) as partner,
        pytest.raises(PartnerAway, match=r"it at .* had not answered after 0.3 s"),
    ):
        pick_up(partner, a_key(), seconds_left=0.3)


def test_a_call_has_no_more_than_the_option_says(partners: Partners) -> None:
    url = partners.base_url(Service.COURIER)
    with (
        closing(Partner("it", PartnerOptions(base_url=url, timeout_seconds=0.2))) as partner,
        partners.fault(Fault(delay_seconds=3000)),
        pytest.raises(PartnerAway, match=r"had not answered after 0.2 s"),
    ):
        pick_up(partner, a_key(), seconds_left=600)


def test_a_name_server_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = Event()

    def look_up(*_: object, **__: object) -> NoReturn:
        answered.wait()
        raise socket.gaierror("too late")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    options = PartnerOptions(base_url="https://courier.example")
    with (
        closing(Partner("it", options)) as partner,
        setting(answered),
        pytest.raises(PartnerAway, match=r"had not answered after 0.2 s"),
    ):
        pick_up(partner, a_key(), seconds_left=0.2)


def test_slow_calls_do_not_hold_up_others(partners: Partners, courier: Partner) -> None:
    """All of a partner's calls share one thread."""
    hold = Fault(service="courier", delay_seconds=3000, count=4)
    before = partners.counts()[Service.COURIER].requests
    with partners.fault(hold), ThreadPoolExecutor(4) as threads:
        slow = [threads.submit(pick_up, courier, a_key(), seconds_left=2) for _ in range(4)]
        while partners.counts()[Service.COURIER].requests < before + 4:
            pass
        pick_up(courier, a_key())
        assert not any(each.done() for each in slow)
        assert all(isinstance(each.exception(), PartnerAway) for each in slow)


def test_nobody_is_called_when_no_time_is_left(partners: Partners, courier: Partner) -> None:
    key = a_key()

    with pytest.raises(PartnerAway, match="no time was left"):
        pick_up(courier, key, seconds_left=-1.0)

    assert statuses(partners, Service.COURIER, key) == []


def test_an_answer_that_repeats_our_token_does_not_tell_it(
    partners: Partners, courier: Partner
) -> None:
    with (
        partners.fault(Fault(status=403, words=f"the token {TOKEN} is expired\r\nX: y")),
        pytest.raises(Reject) as refused,
    ):
        pick_up(courier, a_key())

    assert str(refused.value) == "the courier refused this (403: the token *** is expired X: y)"


def test_a_partner_that_is_away_is_told_without_the_token() -> None:
    options = PartnerOptions(base_url="http://127.0.0.1:9", token=TOKEN)
    with closing(Partner("it", options)) as partner, pytest.raises(PartnerAway) as away:
        pick_up(partner, a_key())

    assert TOKEN not in str(away.value)
    assert "http://127.0.0.1:9" in str(away.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "courier.example",
        "ftp://courier",
        "http://",
        "https://me:pa55@courier/v1",
        "http://c/?key=pa55",
    ],
)
def test_a_base_url_that_cannot_be_used_is_told_at_the_start(url: str) -> None:
    with pytest.raises(ValueError, match="`base_url`") as error:
        Partner("it", PartnerOptions(base_url=url))

    assert "pa55" not in str(error.value)


def test_options_with_a_typing_error_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="timeout"):
        msgspec.convert({"base_url": "http://c", "timeout": 3}, PartnerOptions)


def test_a_key_that_no_header_can_hold_is_written_in_ascii(
    partners: Partners, courier: Partner
) -> None:
    pick_up(courier, "1:kurier abholung\r\nü")

    assert statuses(partners, Service.COURIER, "1:kurier%20abholung%0D%0A%C3%BC") == [201]
