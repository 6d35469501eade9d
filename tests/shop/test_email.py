"""E-mails on their way out: mail servers of every mood, SES, and a Maildir."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ses.models import ses_backends

from handlers.notifications.channels import EmailChannel, Notification
from handlers.notifications.orders import Order
from handlers.notifications.templates import TEMPLATES, render
from handlers.notifications.transports import MailAway, email_options
from outboxd import Reject
from tests.emulators import moto
from tests.shop.parties import CUSTOMER, SENDER, delivered, mail_server, together

PASSWORD = "s3cret-password"
REGION = "us-east-1"

HEADERS = {
    "Message-ID",
    "Date",
    "From",
    "To",
    "Subject",
    "Auto-Submitted",
    "X-Order-ID",
    "X-Template",
    "Content-Type",
    "Content-Transfer-Encoding",
    "MIME-Version",
}


class Accepting:
    """A mail server that takes everything."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        self.envelopes.append(envelope)
        return "250 taken"


def a_notification(key: str = "1:handler") -> Notification:
    order = Order(uuid4(), CUSTOMER, "SGD", 5350, None, told=False)
    return Notification(order, "payment_success", render("payment_success", order), key)


def send(options: dict[str, Any], seconds_left: float = 10.0, key: str = "1:handler") -> None:
    with closing(EmailChannel(options)) as channel:
        channel.send(a_notification(key), seconds_left)


def smtp(address: tuple[str, int], **options: Any) -> dict[str, Any]:
    host, port = address
    return {"transport": "smtp", "host": host, "port": port, "sender": SENDER, **options}


@pytest.mark.parametrize("place", ["key", "tracking_number", "currency"])
def test_nothing_that_comes_from_outside_can_begin_a_header_of_its_own(
    tmp_path: Path, place: str
) -> None:
    evil = "x\r\nBcc: all@shop.example\r\n\r\nboo"
    facts = {"key": "1:handler", "tracking_number": "SG1", "currency": "SGD", place: evil}
    order = Order(uuid4(), CUSTOMER, facts["currency"], 5350, facts["tracking_number"], told=False)
    options = {"transport": "maildir", "sender": SENDER, "mail_directory": str(tmp_path)}
    with closing(EmailChannel(options)) as channel:
        for template in TEMPLATES:
            channel.send(Notification(order, template, render(template, order), facts["key"]), 10.0)

    for message in delivered(tmp_path):
        assert message["Bcc"] is None
        assert set(message.keys()) == HEADERS


# SMTP


def test_the_envelope_has_the_bare_addresses() -> None:
    server = Accepting()
    with mail_server(server) as address:
        send(smtp(address))

    (envelope,) = server.envelopes
    assert envelope.mail_from == "orders@shop.example"
    (recipient,) = envelope.rcpt_tos
    assert recipient.startswith("order-")
    assert recipient.endswith("@customers.shop.example")


class Answers(Accepting):
    """A mail server that answers one command in its own way."""

    def __init__(self, command: str, answer: str) -> None:
        super().__init__()

        async def hook(*_: Any) -> str:
            return answer

        setattr(self, f"handle_{command}", hook)


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
def test_a_5xx_is_for_ever_and_told_in_the_servers_words(command: str) -> None:
    with (
        mail_server(Answers(command, "550 no such mailbox here")) as address,
        pytest.raises(
            Reject, match=r"the mail server refused the e-mail \(550 no such mailbox here\)"
        ),
    ):
        send(smtp(address))


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
def test_a_4xx_is_for_now(command: str) -> None:
    with (
        mail_server(Answers(command, "451 greylisted, come again")) as address,
        pytest.raises(MailAway, match="451 greylisted, come again"),
    ):
        send(smtp(address))


class CutsAt(Accepting):
    """A mail server whose connection breaks when a command has come."""

    def __init__(self, command: str) -> None:
        super().__init__()
        self._command = command

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        if self._command == "DATA":
            server.transport.abort()
        return await super().handle_DATA(server, session, envelope)

    async def handle_QUIT(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        if self._command == "QUIT":
            server.transport.abort()
        return "221 bye"


def test_a_connection_that_breaks_in_the_message_leaves_it_to_be_sent_again() -> None:
    with mail_server(CutsAt("DATA")) as address, pytest.raises(MailAway):
        send(smtp(address))


def test_a_connection_that_breaks_after_the_message_does_not_send_it_again() -> None:
    server = CutsAt("QUIT")
    with mail_server(server) as address:
        send(smtp(address))

    assert len(server.envelopes) == 1


class Slow(Accepting):
    """A mail server that never says whether it has taken the message."""

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        await asyncio.Event().wait()
        return "250 taken"


@pytest.mark.parametrize(("seconds_left", "timeout"), [(0.2, 10.0), (10.0, 0.2)])
def test_a_server_that_is_too_slow_is_left(seconds_left: float, timeout: float) -> None:
    with mail_server(Slow()) as address, pytest.raises(MailAway, match="timed out"):
        send(smtp(address, timeout_seconds=timeout), seconds_left)


class Hesitant(Accepting):
    """A mail server that thinks before each answer, never for long."""

    async def handle_MAIL(  # noqa: N802
        self, server: Any, session: Any, envelope: Envelope, address: str, options: Any
    ) -> str:
        await asyncio.sleep(0.4)
        envelope.mail_from = address
        return "250 go on"

    async def handle_RCPT(  # noqa: N802
        self, server: Any, session: Any, envelope: Envelope, address: str, options: Any
    ) -> str:
        await asyncio.sleep(0.4)
        envelope.rcpt_tos.append(address)
        return "250 go on"


def test_many_short_waits_are_not_longer_than_the_time_that_is_left() -> None:
    server = Hesitant()
    with mail_server(server) as address, pytest.raises(MailAway, match="timed out"):
        send(smtp(address), seconds_left=0.6)

    assert server.envelopes == []


def test_nothing_is_sent_when_no_time_is_left() -> None:
    server = Accepting()
    with mail_server(server) as address, pytest.raises(MailAway, match="no time was left"):
        send(smtp(address), seconds_left=0.0)

    assert server.envelopes == []


def test_a_server_that_is_away_is_told_by_its_address() -> None:
    with pytest.raises(MailAway, match=r"the mail server at 127\.0\.0\.1:9 did not take"):
        send(smtp(("127.0.0.1", 9)))


# SMTP with STARTTLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate of 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + built.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_with_starttls_the_message_is_encrypted(
    tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    server = Accepting()
    with mail_server(server, tls_context=tls, require_starttls=True) as address:
        send(smtp(address, starttls=True))

    assert len(server.envelopes) == 1


def test_a_certificate_that_nobody_vouches_for_is_not_accepted(tls: ssl.SSLContext) -> None:
    server = Accepting()
    with (
        mail_server(server, tls_context=tls) as address,
        pytest.raises(MailAway, match="certificate verify failed"),
    ):
        send(smtp(address, starttls=True))

    assert server.envelopes == []


def test_a_server_without_starttls_gets_nothing_when_it_is_asked_for() -> None:
    server = Accepting()
    with (
        mail_server(server) as address,
        pytest.raises(MailAway, match="it offers no STARTTLS, and `starttls` is set"),
    ):
        send(smtp(address, starttls=True))

    assert server.envelopes == []


@pytest.mark.parametrize("right", [True, False])
def test_a_login_is_used_and_never_told(
    tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch, right: bool
) -> None:
    def check(*arguments: Any) -> AuthResult:
        assert arguments[-1] == LoginPassword(b"shop", PASSWORD.encode())
        return AuthResult(success=right, handled=False)

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    server = Accepting()
    login = {"starttls": True, "username": "shop", "password": PASSWORD}
    with mail_server(server, tls_context=tls, authenticator=check, auth_required=True) as address:
        if right:
            send(smtp(address, **login))
        else:
            with pytest.raises(MailAway, match="535") as away:
                send(smtp(address, **login))
            assert PASSWORD not in str(away.value)

    assert len(server.envelopes) == int(right)


# SES


@pytest.fixture(scope="module")
def ses_endpoint() -> Iterator[str]:
    with moto() as endpoint:
        yield endpoint


@pytest.fixture
def ses(ses_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    return {
        "transport": "ses",
        "endpoint_url": ses_endpoint,
        "region": REGION,
        "sender": SENDER,
    }


def test_ses_is_given_the_whole_message(ses: dict[str, Any], ses_endpoint: str) -> None:
    client = boto3.client("sesv2", endpoint_url=ses_endpoint, region_name=REGION)
    client.create_email_identity(EmailIdentity="orders@shop.example")
    client.close()

    send(ses, key="7:handler")

    (sent,) = ses_backends[DEFAULT_ACCOUNT_ID][REGION].sent_messages
    assert "Message-ID: <7.handler@shop.example>" in sent.raw_data
    assert "X-Template: payment_success" in sent.raw_data
    (recipient,) = set(sent.destinations)  # moto also counts the header `To`
    assert recipient.endswith("@customers.shop.example")


def test_what_ses_refuses_needs_a_person(ses: dict[str, Any]) -> None:
    with pytest.raises(Reject, match=r"SES refused the e-mail \(MessageRejected: .*other@shop"):
        send({**ses, "sender": "other@shop.example"})


def test_an_ses_that_is_away_is_asked_again(ses: dict[str, Any]) -> None:
    with pytest.raises(MailAway, match="SES did not take the e-mail"):
        send({**ses, "endpoint_url": "http://127.0.0.1:9"})


def test_ses_is_not_asked_when_no_time_is_left(ses: dict[str, Any]) -> None:
    with pytest.raises(MailAway, match="no time was left"):
        send(ses, seconds_left=0.0)


# A Maildir


def test_several_threads_lose_no_message_in_a_maildir(tmp_path: Path) -> None:
    options = {"transport": "maildir", "sender": SENDER, "mail_directory": str(tmp_path)}
    with closing(EmailChannel(options)) as channel:
        together(lambda: channel.send(a_notification(), 10.0), 8)

    assert len(delivered(tmp_path)) == 8


# Options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "`transport` is None: expected one of maildir, ses, smtp"),
        ({"transport": "fax"}, "`transport` is 'fax'"),
        ({"transport": "smtp", "sender": SENDER}, "host"),
        ({"transport": "smtp", "sender": SENDER, "host": "h", "prot": 25}, "prot"),
        ({"transport": "smtp", "sender": SENDER, "host": "h", "port": "many"}, "port"),
        ({"transport": "ses", "sender": SENDER, "host": "h"}, "host"),
        (
            {"transport": "smtp", "sender": SENDER, "host": "h", "password": PASSWORD},
            "set `starttls = true`",
        ),
    ],
)
def test_a_mistake_in_the_options_is_told_at_the_start(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        email_options(options)

    assert PASSWORD not in str(error.value)


def test_options_from_the_environment_are_texts() -> None:
    options = email_options(
        {"transport": "smtp", "sender": SENDER, "host": "h", "port": "587", "starttls": "true"}
    )

    assert options == email_options(
        {"transport": "smtp", "sender": SENDER, "host": "h", "port": 587, "starttls": True}
    )
