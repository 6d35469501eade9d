"""What our own transport carries, and what it leaves to the SDK's."""

from contextlib import closing
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, HeadersDict
from hypothesis import given
from hypothesis import strategies as st

from outboxd.adapters.aws.transport import lean
from outboxd.adapters.aws.transport.answers import Answer, AnswerReader, Malformed, TooLong
from outboxd.adapters.aws.transport.requests import message_of
from outboxd.adapters.aws.transport.targets import Target, target_of
from outboxd.adapters.eventbridge.client import events_client
from outboxd.adapters.sns.client import sns_client
from outboxd.adapters.sqs.client import sqs_client
from outboxd.core.settings import AwsSettings
from tests.adapters.scripted_server import answer, client_of, head, scripted

OK = answer()
PLACE = Target(secure=False, host="h", port=80, path=b"/", authority=b"h")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[Target]:
    """Where requests go that our own transport carries."""
    targets: list[Target] = []
    carry = lean.LeanTransport._carry

    def counted(self: Any, message: bytes, road: lean.Road, request: Any) -> Answer:
        targets.append(road.target)
        return carry(self, message, road, request)

    monkeypatch.setattr(lean.LeanTransport, "_carry", counted)
    return targets


@pytest.mark.parametrize(("transport", "times"), [("lean", 1), ("botocore", 0)])
def test_the_setting_chooses(carried: list[Target], transport: str, times: int) -> None:
    with (
        scripted([OK]) as server,
        closing(client_of(server.url, transport=transport)) as client,
    ):
        client.list_queues()

    assert len(carried) == times


def test_it_carries_the_calls_of_all_three_services(carried: list[Target]) -> None:
    xml = answer(
        b"<ListTopicsResponse><ListTopicsResult/></ListTopicsResponse>", "Content-Type: text/xml"
    )
    with scripted([OK], [xml], [OK]) as server:
        aws = AwsSettings(endpoint_url=server.url)
        with closing(sqs_client(aws, connections=1)) as sqs:
            sqs.list_queues()
        with closing(sns_client(aws, connections=1)) as sns:
            sns.list_topics()
        with closing(events_client(aws, connections=1)) as events:
            events.list_event_buses()

    assert len(carried) == 3


@pytest.mark.parametrize(
    ("variable", "no_proxy", "times"),
    [
        ("http_proxy", "", 0),
        ("HTTP_PROXY", "", 0),
        ("http_proxy", "sqs.example", 1),
        ("https_proxy", "", 1),
        ("all_proxy", "", 1),
    ],
)
def test_a_proxy_is_left_to_the_sdk(
    carried: list[Target],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    no_proxy: str,
    times: int,
) -> None:
    with scripted([OK]) as proxy:
        monkeypatch.setenv(variable, proxy.url)
        monkeypatch.setenv("no_proxy", no_proxy)
        # Where nothing is behind a proxy, the proxy stands in for the service.
        url = proxy.url if times else "http://sqs.example"
        if no_proxy:
            monkeypatch.setenv("no_proxy", "127.0.0.1")
        with closing(client_of(url)) as client:
            client.list_queues()
        ((_, request),) = proxy.requests

    assert len(carried) == times
    assert request.startswith(b"POST / " if times else b"POST http://sqs.example/ ")


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h", Target(False, "h", 80, b"/", b"h")),
        ("http://H.Example:4566/", Target(False, "h.example", 4566, b"/", b"h.example:4566")),
        ("http://h:80/base/path", Target(False, "h", 80, b"/base/path", b"h")),
        ("https://h:443/", Target(True, "h", 443, b"/", b"h")),
        ("https://h:80/", Target(True, "h", 80, b"/", b"h:80")),
        ("http://[::1]:4566/", Target(False, "::1", 4566, b"/", b"[::1]:4566")),
        ("https://[::1]/", Target(True, "::1", 443, b"/", b"[::1]")),
    ],
)
def test_a_url_says_where_a_request_goes(url: str, target: Target) -> None:
    assert target_of(url) == target


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h",
        "ftp://h/",
        "unix:///run/socket",
        "http:///path",
        "http://:80/",
        "http://h:port/",
        "http://h:99999/",
        "http://h:0/",
        "http://me:secret@h/",
        "http://h/?query",
        "http://h/#fragment",
        "http://h/a b",
        "http://h/%41",
        "http://h/\r\nX: y",
        "http://h/\n",
        "http://h\t/",
        "http://[::1%25eth0]/",
        "http://[::1/",
        "http://[h]/",
        "http://b\u00fccher.example/",
        "HTTP://h/",
    ],
)
def test_an_unusual_url_is_left_to_the_sdk(url: str) -> None:
    assert target_of(url) is None


def request_with(**fields: Any) -> AWSPreparedRequest:
    headers = HeadersDict({"Content-Length": "2", **fields.pop("headers", {})})
    values = {
        "method": "POST",
        "url": "http://h/",
        "headers": headers,
        "body": b"{}",
        "stream_output": False,
        **fields,
    }
    return AWSPreparedRequest(**values)


def test_a_request_is_its_headers_and_its_body() -> None:
    assert message_of(request_with(headers={"X-A": b"b", "X-C": "\u00e9"}), PLACE) == (
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nX-A: b\r\nX-C: \xc3\xa9\r\n"
        b"Host: h\r\nAccept-Encoding: identity\r\n\r\n{}"
    )


def test_headers_that_are_there_are_not_repeated() -> None:
    message = message_of(request_with(headers={"host": "signed", "ACCEPT-encoding": "gzip"}), PLACE)

    assert message == (
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nhost: signed\r\nACCEPT-encoding: gzip\r\n\r\n{}"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"method": "GET"},
        {"method": "HEAD"},
        {"body": None},
        {"body": "\u00e9"},
        {"body": iter([b"{}"])},
        {"stream_output": True},
        {"headers": {"Expect": b"100-continue"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"connection": "close"}},
        {"headers": {"Upgrade": "h2c"}},
        {"headers": HeadersDict()},
        {"headers": {"X-A": "b\r\nX-Evil: c"}},
        {"headers": {"X-A": b"b\nX-Evil: c"}},
        {"headers": {"X-A": b"b\rc"}},
        {"headers": {"X-A\r\nX-Evil": b"b"}},
        {"context": {"read_timeout": 1}},
    ],
)
def test_an_unusual_request_is_left_to_the_sdk(fields: dict[str, Any]) -> None:
    request = request_with(**fields)
    if isinstance(fields.get("headers"), HeadersDict):
        del request.headers["Content-Length"]

    assert message_of(request, PLACE) is None


ANSWERS = st.sampled_from(
    [
        answer(b'{"a":1}', "X: y"),
        answer(b""),
        head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\nT: t\r\n\r\n",
        head("HTTP/1.1 100 Continue") + answer(b"{}"),
        head("HTTP/1.1 204 No Content"),
        answer(b"x", status="503 Slow Down"),
    ]
)


@given(raws=st.lists(ANSWERS, min_size=1, max_size=4), data=st.data())
def test_an_answer_is_the_same_however_it_is_cut_into_pieces(
    raws: list[bytes], data: st.DataObject
) -> None:
    pieces, whole = AnswerReader(), AnswerReader()
    for raw in raws:
        cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1), max_size=10)))
        pieces.begin()
        for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
            assert not pieces.complete
            pieces.feed(raw[start:end])
        whole.begin()
        whole.feed(raw)

        assert pieces.complete
        assert pieces.reusable
        assert pieces.answer() == whole.answer()


@given(st.binary(max_size=200) | st.tuples(ANSWERS, st.binary(max_size=50)).map(b"".join))
def test_whatever_arrives_it_is_an_answer_or_one_of_two_errors(raw: bytes) -> None:
    reader = AnswerReader()
    try:
        reader.feed(raw)
        reader.end()
    except (Malformed, TooLong):
        return
    assert reader.complete
