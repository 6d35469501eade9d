"""A bare HTTP client for the tests that look at connections themselves."""

import asyncio
import json
from typing import Any, NamedTuple

SCOPE = "Credential=test/20260101/us-east-1/sqs/aws4_request"


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else {}


class Connection:
    """One keep-alive connection; sending and reading are separate, so that tests can interleave."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, endpoint: str) -> "Connection":
        host, port = endpoint.removeprefix("http://").split(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def send(self, action: str, **members: object) -> None:
        self.writer.write(encoded(f"AmazonSQS.{action}", json.dumps(members).encode()))

    async def read(self) -> Response:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        body = await self.reader.readexactly(int(headers["content-length"]))
        return Response(int(first.split()[1]), headers, body)

    async def call(self, action: str, **members: object) -> Any:
        """The decoded answer; fails unless the call succeeds."""
        self.send(action, **members)
        response = await asyncio.wait_for(self.read(), 10)
        assert response.status == 200, response
        return response.json

    async def at_end(self) -> bool:
        return await asyncio.wait_for(self.reader.read(), 10) == b""

    def close(self) -> None:
        self.writer.close()


def encoded(target: str, body: bytes, *headers: str, path: str = "/") -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: aws.test:1234",
        f"X-Amz-Target: {target}",
        f"Authorization: AWS4-HMAC-SHA256 {SCOPE}, SignedHeaders=host, Signature=none",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
