"""Cutting bytes into requests, and answers into bytes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.localaws.http1 import MAX_BODY_BYTES, Answer, BadRequest, Request, RequestParser
from tests.localaws.wire import encoded


def parsed(*pieces: bytes) -> list[Request]:
    parser = RequestParser()
    requests = []
    for piece in pieces:
        parser.feed(piece)
        while (request := parser.next_request()) is not None:
            requests.append(request)
    return requests


def test_a_request_has_a_method_a_path_headers_and_a_body() -> None:
    (request,) = parsed(encoded("AmazonSQS.SendMessage", b'{"a": 1}', path="/x?y"))

    assert request.method == "POST"
    assert request.path == "/x?y"
    assert request.headers["x-amz-target"] == "AmazonSQS.SendMessage"
    assert request.body == b'{"a": 1}'
    assert request.keep_alive


@given(
    bodies=st.lists(st.binary(max_size=50), min_size=1, max_size=4),
    cuts=st.lists(st.integers(0, 2000), max_size=10),
)
def test_it_does_not_matter_how_the_bytes_arrive(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(encoded("T", body) for body in bodies)
    edges = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})
    pieces = [stream[a:b] for a, b in pairwise(edges)]

    assert [request.body for request in parsed(*pieces)] == bodies


@pytest.mark.parametrize(
    ("stream", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / SPDY/3\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, 431),
    ],
)
def test_what_is_no_request_for_this_server(stream: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as refusal:
        parsed(stream)

    assert refusal.value.status == refusal.value.answer().status == status


@pytest.mark.parametrize(
    ("version", "header", "keeps"),
    [
        ("1.1", "", True),
        ("1.1", "Connection: close\r\n", False),
        ("1.1", "Connection: Close\r\n", False),
        ("1.0", "", False),
        ("1.0", "Connection: keep-alive\r\n", True),
    ],
)
def test_whether_the_connection_stays(version: str, header: str, keeps: bool) -> None:
    (request,) = parsed(f"GET / HTTP/{version}\r\n{header}\r\n".encode())

    assert request.keep_alive == keeps


def test_an_answer_as_bytes() -> None:
    answer = Answer(200, "text/plain", b"hello", (("x-a", "1"),))

    assert answer.encoded(keep_alive=True) == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\nx-a: 1\r\n\r\nhello"
    )
    assert b"connection: close\r\n\r\nhello" in answer.encoded(keep_alive=False)
