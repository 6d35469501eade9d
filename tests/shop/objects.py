"""An S3 for tests: moto's, a bucket in it, and one that answers as it is told."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from uuid import uuid4

import boto3

from tests.emulators import moto

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client
    from types_boto3_s3.type_defs import GetObjectOutputTypeDef

REGION = "us-east-1"


class Bucket:
    """What is in one bucket of the S3 at `endpoint`."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.endpoint = endpoint
        self.name = name
        self._client: S3Client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        self._client.create_bucket(Bucket=name)

    def keys(self) -> list[str]:
        listed = self._client.list_objects_v2(Bucket=self.name)
        return [each["Key"] for each in listed.get("Contents", [])]

    def head(self, key: str) -> "GetObjectOutputTypeDef":
        return self._client.get_object(Bucket=self.name, Key=key)

    def read(self, key: str) -> bytes:
        with self.head(key)["Body"] as body:
            return body.read()

    def close(self) -> None:
        self._client.close()


@contextmanager
def s3() -> Iterator[str]:
    """The endpoint of an S3."""
    with moto() as endpoint:
        yield endpoint


@contextmanager
def a_bucket(endpoint: str) -> Iterator[Bucket]:
    """A new bucket, empty, of a name that nobody else has."""
    bucket = Bucket(endpoint, f"invoices-{uuid4()}")
    try:
        yield bucket
    finally:
        bucket.close()


class MoodyS3:
    """An S3 that gives each request to `answer`, which returns a status and a code of S3, or None
    for a connection that is cut; `requests` counts them."""

    def __init__(self, answer: Callable[[], tuple[int, str] | None]) -> None:
        self.answer = answer
        self.requests = 0
        self.endpoint = ""


@contextmanager
def moody_s3(answer: Callable[[], tuple[int, str] | None]) -> Iterator[MoodyS3]:
    mood = MoodyS3(answer)

    class Requests(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            mood.requests += 1
            if self.headers.get("Expect") is None:
                self.rfile.read(int(self.headers["Content-Length"]))
            self.close_connection = True
            answered = mood.answer()
            if answered is None:
                return
            status, code = answered
            body = f"<Error><Code>{code}</Code><Message>so it is</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", "0" if status < 300 else str(len(body)))
            self.end_headers()
            if status >= 300:
                self.wfile.write(body)

        def handle_expect_100(self) -> bool:
            super().handle_expect_100()
            self.rfile.read(int(self.headers["Content-Length"]))
            return True

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Requests) as server:
        mood.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield mood
        finally:
            server.shutdown()
            thread.join()
