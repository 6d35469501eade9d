"""TLS over our own transport is as strict as over the SDK's: what takes `transport` is for both."""

import ssl
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError, SSLError
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from outboxd.adapters.aws.outages import outage
from outboxd.core.errors import OutageKind
from tests.adapters.scripted_server import PATIENCE_SECONDS, Act, answer, client_of, scripted

OK = answer()
HERE: Sequence[x509.GeneralName] = (
    x509.DNSName("localhost"),
    x509.IPAddress(ip_address("127.0.0.1")),
)


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["lean", "botocore"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def certificate(
    path: Path, names: Sequence[x509.GeneralName] = HERE, *, days: int = 1, common_name: str = "x"
) -> Path:
    """Key and certificate in one file, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + built.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("tls") / "here.pem")


def speaking(pem: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


@pytest.mark.parametrize("told_by", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "profile"])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_server_that_somebody_vouches_for_is_asked(
    transport: str,
    pem: Path,
    told_by: str,
    host: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if told_by == "profile":
        (tmp_path / "config").write_text(f"[default]\nca_bundle = {pem}\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    else:
        monkeypatch.setenv(told_by, str(pem))
    asked_for: list[str | None] = []
    tls = speaking(pem)
    tls.sni_callback = lambda _, name, __: asked_for.append(name)
    body = b'{"QueueUrls":["%b"]}' % (b"x" * 200_000)
    with (
        scripted([answer(body), answer(body)], tls=tls) as server,
        closing(client_of(f"https://{host}:{server.port}", transport=transport)) as client,
    ):
        for _ in range(2):
            assert client.list_queues()["QueueUrls"] == ["x" * 200_000]

    assert [number for number, _ in server.requests] == [0, 0]
    assert asked_for == ([None] if host == "127.0.0.1" else ["localhost"])


def test_certificates_of_the_network_are_not_those_of_the_environments_bundle(
    transport: str, pem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(pem))
    monkeypatch.setenv("AWS_CA_BUNDLE", "/nowhere/bundle.pem")
    refused(transport, pem)


def refused(transport: str, pem: Path, host: str = "127.0.0.1") -> str:
    """What the SDK says of a server with that certificate."""
    with (
        scripted([OK], tls=speaking(pem)) as server,
        closing(client_of(f"https://{host}:{server.port}", transport=transport)) as client,
    ):
        with pytest.raises(SSLError) as error:
            client.list_queues()
        assert server.requests == []
    assert type(error.value) is SSLError
    assert outage(error.value, "asking").kind is OutageKind.OTHER
    return str(error.value)


def test_a_server_that_nobody_vouches_for_is_told_nothing(transport: str, pem: Path) -> None:
    assert "self-signed certificate" in refused(transport, pem)


@pytest.mark.parametrize(
    ("names", "host"),
    [
        ([x509.DNSName("sqs.example")], "localhost"),
        ([x509.DNSName("localhost")], "127.0.0.1"),
        ([x509.DNSName("127.0.0.1")], "127.0.0.1"),
        ([x509.IPAddress(ip_address("127.0.0.2"))], "127.0.0.1"),
        ([x509.DNSName("sqs.example")], "127.0.0.1"),
    ],
)
def test_a_certificate_of_another_host_is_not_accepted(
    transport: str,
    names: Sequence[x509.GeneralName],
    host: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pem = certificate(tmp_path / "other.pem", names, common_name="localhost")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(pem))

    words = refused(transport, pem, host)
    assert "match" in words or "valid for" in words


def test_a_certificate_of_all_hosts_is_not_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here OpenSSL is stricter than the SDK, which lets it pass for a host without a dot."""
    pem = certificate(tmp_path / "all.pem", [x509.DNSName("*")])
    monkeypatch.setenv("AWS_CA_BUNDLE", str(pem))

    assert "mismatch" in refused("lean", pem, "localhost")


def test_a_certificate_that_has_ended_is_not_accepted(
    transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = certificate(tmp_path / "old.pem", days=-1)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(pem))

    assert "expired" in refused(transport, pem)


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_bundle_without_certificates_lets_nobody_pass(
    transport: str,
    pem: Path,
    content: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_text(content)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))

    refused(transport, pem)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_an_old_version_of_tls_is_not_spoken(
    transport: str, pem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(pem))
    tls = speaking(pem)
    tls.minimum_version = ssl.TLSVersion.TLSv1
    tls.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        scripted([OK], tls=tls) as server,
        closing(client_of(server.url, transport=transport)) as client,
        pytest.raises(SSLError),
    ):
        client.list_queues()


def test_a_renewed_bundle_is_read(
    transport: str, pem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = certificate(tmp_path / "bundle.pem", common_name="somebody else")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    with (
        scripted([OK], [OK], tls=speaking(pem)) as server,
        closing(client_of(server.url, transport=transport)) as client,
    ):
        with pytest.raises(SSLError):
            client.list_queues()
        bundle.write_bytes(pem.read_bytes())
        client.list_queues()

        assert [number for number, _ in server.requests] == [1]


def test_a_server_without_tls_is_told_nothing(transport: str) -> None:
    with scripted([OK]) as server:
        url = server.url.replace("http:", "https:")
        with (
            closing(client_of(url, transport=transport, read_timeout_seconds=0.3)) as client,
            pytest.raises((SSLError, ReadTimeoutError)),
        ):
            client.list_queues()


def test_a_handshake_that_is_never_answered_ends(transport: str) -> None:
    with scripted([Act.READ_NOTHING]) as server:
        url = server.url.replace("http:", "https:")
        with (
            closing(client_of(url, transport=transport, connect_timeout_seconds=0.2)) as client,
            pytest.raises(ReadTimeoutError),
        ):
            client.list_queues()


def test_a_handshake_that_is_cut_off_is_a_closed_connection(transport: str) -> None:
    with scripted([Act.CUT]) as server:
        url = server.url.replace("http:", "https:")
        with (
            closing(client_of(url, transport=transport)) as client,
            pytest.raises(ConnectionClosedError),
        ):
            client.list_queues()


def test_a_connection_that_was_closed_while_idle_is_not_used(
    transport: str, pem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(pem))
    with (
        scripted([OK, Act.CLOSE], [OK], tls=speaking(pem)) as server,
        closing(client_of(server.url, transport=transport)) as client,
    ):
        client.list_queues()
        server.played[0].wait(PATIENCE_SECONDS)
        client.list_queues()

        assert [number for number, _ in server.requests] == [0, 1]


def test_a_request_without_an_answer_is_not_sent_again(
    transport: str, pem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(pem))
    with (
        scripted([OK, Act.HANG_UP], [OK], tls=speaking(pem)) as server,
        closing(client_of(server.url, transport=transport)) as client,
    ):
        client.list_queues()
        with pytest.raises(ConnectionClosedError):
            client.list_queues()

        assert server.connections == 1


def test_a_server_that_does_not_read_is_left_after_the_read_timeout(
    transport: str, pem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(pem))
    with (
        scripted([Act.READ_NOTHING], tls=speaking(pem)) as server,
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
        client.send_message(QueueUrl="http://queue/orders", MessageBody="x" * 20_000_000)
