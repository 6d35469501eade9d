"""Our signatures are the SDK's, byte for byte."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import botocore
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import NoCredentialsError
from hypothesis import given
from hypothesis import strategies as st

from outboxd.adapters.aws.transport import signing
from outboxd.adapters.aws.transport.signing import LeanSigner
from tests.adapters.scripted_server import answer, client_of, scripted

NOW = 1_800_000_000.0
URL = "https://sqs.eu-west-1.amazonaws.com/"


@contextmanager
def at(now: float) -> Iterator[None]:
    """What the SDK takes for the time."""
    then = datetime.fromtimestamp(now, UTC).replace(tzinfo=None)
    with patch("botocore.auth.get_current_datetime", return_value=then):
        yield


def a_request(**fields: Any) -> AWSRequest:
    context = fields.pop("context", {})
    request = AWSRequest(**{"method": "POST", "url": URL, "data": b"{}", "headers": {}, **fields})
    request.context = dict(context)
    return request


def signed_by_the_sdk(
    credentials: Credentials, service: str = "sqs", region: str = "eu-west-1", **fields: Any
) -> list[tuple[str, str]]:
    request = a_request(**fields)
    with at(NOW):
        SigV4Auth(credentials.get_frozen_credentials(), service, region).add_auth(request)
    return sorted(request.headers.items())


def signed(signer: LeanSigner, **fields: Any) -> list[tuple[str, str]]:
    request = a_request(**fields)
    with at(NOW):
        signer.sign(request, "sqs", "eu-west-1", botocore.UNSIGNED)
    return sorted(request.headers.items())


NAMES = st.sampled_from(
    [
        "X-Amz-Target",
        "Content-Type",
        "User-Agent",
        "amz-sdk-request",
        "Expect",
        "Host",
        "x-a",
        "X-Amzn-Trace-Id",
        "Authorization",
        "X-Amz-Date",
        "X-Amz-Security-Token",
        "Date",
        "X-Amz-Content-SHA256",
    ]
)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=30)
TEXT = st.text("abcXYZ019/+=", min_size=1, max_size=40)


@given(
    headers=st.dictionaries(NAMES, VALUES, max_size=6),
    body=st.binary(max_size=50) | st.just({"Action": "Publish", "Message": "h\u00e9 &="}),
    credentials=st.builds(Credentials, TEXT, TEXT, st.none() | TEXT),
    url=st.sampled_from(
        [URL, "http://127.0.0.1:4566", "http://[::1]:80/", "https://H:443", "http://h/a/../b?c=d"]
    ),
    context=st.sampled_from([{}, {"payload_signing_enabled": False}, {"checksum": {}}]),
)
def test_a_signature_is_the_sdks(
    headers: dict[str, str], body: Any, credentials: Credentials, url: str, context: dict[str, Any]
) -> None:
    signer = LeanSigner(credentials, lambda: NOW)
    fields = {"headers": headers, "data": body, "url": url, "context": context}

    theirs = signed_by_the_sdk(credentials, **fields)

    assert signed(signer, **fields) == theirs
    assert signed(signer, **fields) == theirs  # with the key that was kept


def test_an_ordinary_request_is_signed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signing, "SigV4Auth")

    (authorization, *_) = signed(LeanSigner(Credentials("id", "secret", "token"), lambda: NOW))

    assert authorization[1].startswith(
        "AWS4-HMAC-SHA256 Credential=id/20270115/eu-west-1/sqs/aws4_request, "
        "SignedHeaders=host;x-amz-date;x-amz-security-token, Signature="
    )


def test_a_key_is_for_one_day_one_region_one_service_and_one_secret() -> None:
    now = [NOW]
    credentials = Credentials("id", "secret")
    signer = LeanSigner(credentials, lambda: now[0])

    def key_of(place: dict[str, str]) -> str:
        request = a_request(context={"signing": place})
        signer.sign(request, "sqs", "eu-west-1", botocore.UNSIGNED)
        theirs = a_request()
        with at(now[0]):
            region, service = place.get("region", "eu-west-1"), place.get("signing_name", "sqs")
            SigV4Auth(credentials.get_frozen_credentials(), service, region).add_auth(theirs)
        assert request.headers["Authorization"] == theirs.headers["Authorization"]
        return str(request.headers["Authorization"])

    seen = {key_of({}), key_of({"region": "us-east-1"}), key_of({"signing_name": "events"})}
    now[0] += 86_400
    seen.add(key_of({}))
    credentials.secret_key = "other"
    seen.add(key_of({}))

    assert len(seen) == 5


@pytest.mark.parametrize("version", ["v4a", "bearer", "v4-query", "s3v4", botocore.UNSIGNED])
def test_other_signatures_are_the_sdks(version: object) -> None:
    assert LeanSigner(Credentials("id", "secret")).choose(version, {}) is None


def test_credentials_of_one_request_are_used_by_the_sdk() -> None:
    context = {"signing": {"request_credentials": Credentials("other", "secret")}}

    assert LeanSigner(Credentials("id", "secret")).choose("v4", context) is None


def test_each_try_is_signed_with_the_credentials_of_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "first")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with (
        scripted([answer(status="500 Oh"), answer()]) as server,
        closing(client_of(server.url, attempts=2)) as client,
    ):
        client.meta.events.register(
            "needs-retry", lambda **_: setattr(client._outboxd_credentials, "access_key", "second")
        )
        client.list_queues()

    first, second = (request for _, request in server.requests)
    assert first.count(b"Authorization: AWS4-HMAC-SHA256 Credential=first/") == 1
    assert second.count(b"Authorization: AWS4-HMAC-SHA256 Credential=second/") == 1
    assert first.lower().count(b"authorization") == second.lower().count(b"authorization") == 1


def test_without_credentials_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    with (
        scripted([answer()]) as server,
        closing(client_of(server.url)) as client,
        pytest.raises(NoCredentialsError),
    ):
        client.list_queues()

    assert server.connections == 0
