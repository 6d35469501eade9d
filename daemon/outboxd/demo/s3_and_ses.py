"""S3 and SES, played by moto in a process of its own: invoices are kept there, e-mails sent.

`python -m outboxd.demo.s3_and_ses` serves them and prints its address on the first line.
"""

import argparse
import http.client
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import msgspec
from botocore.config import Config
from msgspec import Struct

from outboxd.demo.errors import DemoError
from outboxd.demo.lifeline import end_with_standard_input
from outboxd.demo.mail import Mail, MailCount
from outboxd.demo.neighbours import neighbour

REGION = "us-east-1"
BUCKET = "invoices"
SENDER = "orders@shop.example"

SENT_PATH = "/_sent"
"""Not moto's: the headers of e-mails that were sent, from a number on."""

TIMEOUT_SECONDS = 10.0

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Documents(Struct, frozen=True):
    """How many there are, and of how many orders."""

    stored: int = 0
    orders: int = 0


class S3AndSes:
    """Both at one endpoint, as their readers see them: what is stored, and what was sent."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._address = urlsplit(endpoint).netloc
        self._mail = MailCount()
        self._s3 = self._client("s3")

    def prepare(self) -> None:
        """Make the bucket, and have the sender verified, as somebody does once in AWS."""
        self._s3.create_bucket(Bucket=BUCKET)
        self._client("sesv2").create_email_identity(EmailIdentity=SENDER)

    def documents(self) -> Documents:
        """What the bucket holds; an invoice is called by its order, in whatever folder."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        keys = [found["Key"] for page in pages for found in page.get("Contents", ())]
        return Documents(stored=len(keys), orders=len({PurePosixPath(key).stem for key in keys}))

    def mail(self) -> Mail:
        """What has been sent so far; each e-mail is asked for once."""
        for message_id, order_id in self._sent_since(self._mail.sent):
            self._mail.add(message_id, order_id)
        return self._mail.total()

    def _sent_since(self, number: int) -> list[tuple[str, str]]:
        # http.client, which knows no proxies: it is on this machine.
        connection = http.client.HTTPConnection(self._address, timeout=TIMEOUT_SECONDS)
        try:
            connection.request("GET", f"{SENT_PATH}?from={number}")
            answer = connection.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            raise DemoError(f"S3 and SES, played by moto, do not answer: {error}") from error
        finally:
            connection.close()
        return msgspec.json.decode(answer, type=list[tuple[str, str]])

    def _client(self, service: Any) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(s3={"addressing_style": "path"}, proxies={}),
        )


@contextmanager
def s3_and_ses(log: Path) -> Iterator[S3AndSes]:
    """Both, with a bucket and a sender, while the block lasts."""
    with neighbour("outboxd.demo.s3_and_ses", [], log) as endpoint:
        served = S3AndSes(endpoint)
        served.prepare()
        yield served


def main() -> int:
    """Serve until told to stop; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m outboxd.demo.s3_and_ses", description="Plays S3 and SES until Ctrl-C."
    )
    parser.add_argument(
        "--stop-with-stdin", action="store_true", help="end when the standard input ends"
    )
    if parser.parse_args().stop_with_stdin:
        end_with_standard_input()
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    moto = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, _with_sent_mail(moto), threaded=True)
    sys.stdout.write(f"http://127.0.0.1:{server.port}\n")
    sys.stdout.flush()
    server.serve_forever()
    return 0


def _with_sent_mail(moto: Wsgi) -> Wsgi:
    """moto, and what it has sent, which it tells nobody by HTTP."""

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != SENT_PATH:
            return moto(environ, start_response)
        first = int(parse_qs(environ["QUERY_STRING"])["from"][0])
        start_response("200 OK", [("Content-Type", "application/json")])
        return [msgspec.json.encode(_sent(first))]

    return app


def _sent(first: int) -> Sequence[tuple[str, str]]:
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.ses.models import ses_backends

    messages = ses_backends[DEFAULT_ACCOUNT_ID][REGION].sent_messages[first:]
    headers = [HeaderParser().parsestr(each.raw_data, headersonly=True) for each in messages]
    return [(str(each["Message-ID"]), str(each["X-Order-ID"])) for each in headers]


if __name__ == "__main__":
    sys.exit(main())
