"""Calls over the transport of our own, beside the same calls over the SDK's: answers and errors.

Where a test takes `transport`, both have to pass it.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
)

from outboxd.adapters.aws.outages import outage
from outboxd.adapters.aws.transport import answers
from outboxd.core.errors import OutageKind
from tests.adapters.scripted_server import Act, Step, answer, client_of, head, scripted

OK = answer()
QUEUES = b'{"QueueUrls":["http://queue/orders"]}'


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.fixture(params=["lean", "botocore"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def asked(transport: str, *script: Step, **settings: Any) -> Any:
    """What ListQueues says when the server does that to its first connection."""
    with (
        scripted(script) as server,
        closing(client_of(server.url, transport=transport, **settings)) as client,
    ):
        return client.list_queues()


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(answer(QUEUES), id="content-length"),
        pytest.param(answer(QUEUES, "Connection: close"), id="close"),
        pytest.param(answer(QUEUES, status="200"), id="no reason"),
        pytest.param(
            head("HTTP/1.1 200 OK", f"CONTENT-length: {len(QUEUES)}") + QUEUES, id="header case"
        ),
        pytest.param(
            head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked")
            + b"5\r\n%b\r\n20;name=value\r\n%b\r\n0\r\nX-Trailer: 1\r\n\r\n"
            % (QUEUES[:5], QUEUES[5:]),
            id="chunked",
        ),
        pytest.param(head("HTTP/1.1 100 Continue") + answer(QUEUES), id="100"),
        pytest.param(
            head("HTTP/1.1 103 Early Hints", "Link: </>", "Content-Type: text/html")
            + head("HTTP/1.1 103 Early Hints")
            + answer(QUEUES),
            id="103 twice",  # http.client skips 100 only
        ),
    ],
)
def test_an_answer_is_read_however_it_is_framed(raw: bytes) -> None:
    found = asked("lean", raw)

    assert found["QueueUrls"] == ["http://queue/orders"]
    assert found["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert "link" not in found["ResponseMetadata"]["HTTPHeaders"]
    assert "x-trailer" not in found["ResponseMetadata"]["HTTPHeaders"]


@pytest.mark.parametrize(
    "start", [("HTTP/1.1 200 OK",), ("HTTP/1.0 200 OK",), ("HTTP/1.1 200 OK", "Connection: close")]
)
def test_a_body_without_a_length_ends_with_its_connection(
    transport: str, start: Sequence[str]
) -> None:
    found = asked(transport, head(*start) + QUEUES, Act.CLOSE)

    assert found["QueueUrls"] == ["http://queue/orders"]


def test_headers_that_come_twice_are_joined_and_known_in_lower_case(transport: str) -> None:
    raw = answer(b"{}", "X-Amzn-RequestId: 7", "Vary: a", "vary: b", "X-Empty:", "X-Text: \xe9")

    headers = asked(transport, raw)["ResponseMetadata"]["HTTPHeaders"]

    assert headers["x-amzn-requestid"] == "7"
    assert headers["vary"] == "a, b"
    assert headers["x-empty"] == ""
    assert headers["x-text"] == "\xe9"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(answer(b""), id="content-length 0"),
        pytest.param(head("HTTP/1.1 204 No Content"), id="204"),
    ],
)
def test_an_answer_may_have_no_body(transport: str, raw: bytes) -> None:
    found = asked(transport, raw)

    assert found["ResponseMetadata"]["HTTPStatusCode"] in (200, 204)
    assert "QueueUrls" not in found


def test_a_large_answer_arrives_whole(transport: str) -> None:
    body = b'{"QueueUrls":["%b"]}' % (b"x" * 3_000_000)

    assert asked(transport, answer(body))["QueueUrls"] == ["x" * 3_000_000]


def test_an_error_of_the_service_keeps_its_type(transport: str) -> None:
    body = b'{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no such queue"}'
    raw = answer(
        body,
        "x-amzn-query-error: AWS.SimpleQueueService.NonExistentQueue;Sender",
        status="400 Bad Request",
    )

    with pytest.raises(ClientError) as error:
        asked(transport, raw)

    assert type(error.value).__name__ == "QueueDoesNotExist"
    assert outage(error.value, "asking").kind is OutageKind.MISSING


@pytest.mark.parametrize(
    ("script", "error", "kind"),
    [
        ([b"garbage\r\n\r\n"], ConnectionClosedError, OutageKind.TIMEOUT),
        ([b"HTTP/1.1 abc OK\r\n\r\n"], ConnectionClosedError, OutageKind.TIMEOUT),
        ([Act.HANG_UP], ConnectionClosedError, OutageKind.TIMEOUT),
        ([b"HTTP/1.1 20", Act.CLOSE], ConnectionClosedError, OutageKind.TIMEOUT),
        (
            [head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + b"5\r\nab", Act.CLOSE],
            ConnectionClosedError,
            OutageKind.TIMEOUT,
        ),
        (
            [head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + b"xyz\r\n", Act.CLOSE],
            ConnectionClosedError,
            OutageKind.TIMEOUT,
        ),
        ([Act.IGNORE], ReadTimeoutError, OutageKind.TIMEOUT),
        (
            [head("HTTP/1.1 200 OK", "Content-Length: 5") + b"{"],
            ReadTimeoutError,
            OutageKind.TIMEOUT,
        ),
    ],
)
def test_what_goes_wrong_is_an_error_of_the_sdk(
    transport: str, script: Sequence[Step], error: type[Exception], kind: OutageKind
) -> None:
    with pytest.raises(error) as raised:
        asked(transport, *script, read_timeout_seconds=0.2)

    assert type(raised.value) is error
    assert outage(raised.value, "asking").kind is kind  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "raw",
    [
        # The SDK takes what has come for the whole, and fails to read it as JSON at best.
        pytest.param(head("HTTP/1.1 200 OK", "Content-Length: 5") + b"{}", id="short body"),
        pytest.param(
            head("HTTP/1.1 200 OK", "Content-Length: 2", "Transfer-Encoding: chunked") + b"{}",
            id="two framings",
        ),
        pytest.param(
            head("HTTP/1.1 200 OK", "Content-Length: 2", "Content-Length: 3") + b"{}",
            id="two lengths",
        ),
        pytest.param(
            head("HTTP/1.1 101 Switching Protocols", "Upgrade: h2c", "Connection: upgrade"),
            id="an upgrade",
        ),
        pytest.param(b"\x16\x03\x01\x02\x00\x01", id="TLS"),
    ],
)
def test_an_answer_that_cannot_be_trusted_is_none(raw: bytes) -> None:
    with pytest.raises(ConnectionClosedError):
        asked("lean", raw, Act.CLOSE)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 140_000, id="a long header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 30_000, id="many headers"),
        pytest.param(head("HTTP/1.1 100 Continue") * 5_000, id="interim answers"),
        pytest.param(answer(b"x" * 300_000), id="a long body"),
        pytest.param(
            head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + b"1\r\nx\r\n" * 50_000,
            id="many chunks",
        ),
    ],
)
def test_an_endless_answer_ends(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_ANSWER_BYTES", 200_000)

    with pytest.raises(HTTPClientError, match="an answer of more than") as error:
        asked("lean", raw)

    assert type(error.value) is HTTPClientError


def test_a_server_that_does_not_read_is_left_after_the_read_timeout(transport: str) -> None:
    # More than the buffers of both ends take.
    body = "x" * 20_000_000
    with (
        scripted([Act.READ_NOTHING]) as server,
        closing(
            client_of(
                server.url,
                transport=transport,
                connect_timeout_seconds=0.3,
                read_timeout_seconds=0.3,
            )
        ) as client,
        pytest.raises(ConnectionClosedError),
    ):
        client.send_message(QueueUrl="http://queue/orders", MessageBody=body)


def test_an_answer_to_half_a_request_is_heard(transport: str) -> None:
    too_large = answer(
        b'{"__type":"RequestEntityTooLarge","message":"no"}',
        "Connection: close",
        status="413 Payload Too Large",
    )
    first_bytes_are_enough = 1_000
    with (
        scripted([too_large, Act.CLOSE]) as server,
        closing(client_of(server.url, transport=transport)) as client,
    ):
        # The server answers when the declared length has come, and the rest is never read.
        client.meta.events.register_first(
            "before-send", lambda request, **_: _declare(request, first_bytes_are_enough)
        )
        with pytest.raises(ClientError, match="RequestEntityTooLarge"):
            client.send_message(QueueUrl="http://queue/orders", MessageBody="x" * 20_000)


def _declare(request: Any, length: int) -> None:
    request.headers["Content-Length"] = str(length).encode()


def test_nobody_at_the_address_is_no_connection(transport: str) -> None:
    with (
        closing(client_of("http://127.0.0.1:1", transport=transport)) as client,
        pytest.raises(EndpointConnectionError) as error,
    ):
        client.list_queues()

    assert outage(error.value, "asking").kind is OutageKind.UNREACHABLE


def test_a_host_without_an_address_is_no_connection(transport: str) -> None:
    with (
        closing(client_of("http://nowhere.invalid", transport=transport)) as client,
        pytest.raises(EndpointConnectionError),
    ):
        client.list_queues()


def test_a_connection_that_does_not_come_about_is_left(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr("socket.socket.connect", silent)
    with (
        closing(client_of("http://127.0.0.1:1", transport=transport)) as client,
        pytest.raises(ConnectTimeoutError) as error,
    ):
        client.list_queues()

    assert outage(error.value, "asking").kind is OutageKind.UNREACHABLE


def test_a_connection_that_ends_while_it_is_set_up_is_a_closed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ended(*_: object) -> None:
        raise OSError(22, "Invalid argument")

    with scripted([OK]) as server, closing(client_of(server.url)) as client:
        monkeypatch.setattr("socket.socket.setsockopt", ended)
        with pytest.raises(ConnectionClosedError):
            client.list_queues()


def test_the_sdk_retries_over_it_as_often_as_it_may(transport: str) -> None:
    with (
        scripted([answer(status="500 Oh"), Act.HANG_UP], [answer(QUEUES)]) as server,
        closing(client_of(server.url, transport=transport, attempts=3)) as client,
    ):
        found = client.list_queues()

    assert found["ResponseMetadata"]["RetryAttempts"] == 2
    assert [number for number, _ in server.requests] == [0, 0, 1]


def test_both_send_the_same_bytes() -> None:
    """Header for header: a proxy or an emulator that is used to the SDK sees nothing new."""
    sent: dict[str, list[str]] = {}
    for transport in ("lean", "botocore"):
        with (
            scripted([answer()]) as server,
            closing(client_of(server.url, transport=transport)) as client,
        ):
            client.send_message(QueueUrl="http://queue/orders", MessageBody="h\u00e9llo")
        ((_, request),) = server.requests
        start, _, body = request.decode().partition("\r\n\r\n")
        first, *headers = start.split("\r\n")
        sent[transport] = [first, *sorted(_without_dice(headers)), body]

    assert sent["lean"] == [
        line.replace(_port(sent["botocore"]), _port(sent["lean"])) for line in sent["botocore"]
    ]


def _without_dice(headers: Sequence[str]) -> list[str]:
    """Headers that differ from call to call by name only."""
    changing = ("amz-sdk-invocation-id:", "authorization:", "x-amz-date:")
    return [h.partition(":")[0] if h.lower().startswith(changing) else h for h in headers]


def _port(lines: Sequence[str]) -> str:
    (host,) = [line for line in lines if line.startswith("Host: ")]
    return host.rpartition(":")[2]
