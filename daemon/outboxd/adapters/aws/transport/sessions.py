"""Sessions of the AWS SDK whose clients send as `[aws] transport` says."""

import os
from functools import partial
from typing import Any

import boto3
import botocore.session
from botocore.client import BaseClient
from botocore.credentials import Credentials
from botocore.utils import get_environ_proxies

from outboxd.adapters.aws.transport.lean import LeanTransport
from outboxd.adapters.aws.transport.signing import LeanSigner
from outboxd.core.settings import AwsSettings


def sdk_session(aws: AwsSettings) -> boto3.session.Session:
    """A session for one client, or several."""
    core = botocore.session.get_session()
    session = boto3.session.Session(botocore_session=core)
    if aws.transport == "lean":
        # The SDK's public way of adding to its client classes, which are made for each client.
        session.events.register("creating-client-class", partial(_extend, core))
    return session


class LeanClient(BaseClient):
    """A client with a transport of its own; `close` closes that as well."""

    _outboxd_verify: str | bool
    _outboxd_credentials: Credentials | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        config: Any = self.meta.config
        self._outboxd_transport = LeanTransport(
            connect_seconds=config.connect_timeout,
            read_seconds=config.read_timeout,
            keepalive=bool(config.tcp_keepalive),
            connections=config.max_pool_connections,
            verify=self._outboxd_verify,
            proxied=partial(_proxied, config.proxies),
        )
        events: Any = self.meta.events  # typed as if no handler had an answer
        if config.client_cert is None:
            # The last of all: a handler may still forbid the request (adapters.aws.last_look).
            events.register_last("before-send", self._outboxd_transport.send)
        if self._outboxd_credentials is not None:  # else it is the SDK's to complain
            signer = LeanSigner(self._outboxd_credentials)
            events.register_last("choose-signer", signer.choose)
            events.register_last("before-sign", signer.sign)

    def close(self) -> None:
        super().close()
        self._outboxd_transport.close()


def _extend(
    core: botocore.session.Session,
    base_classes: list[type],
    class_attributes: dict[str, Any],
    **_: Any,
) -> None:
    base_classes.insert(0, LeanClient)
    class_attributes["_outboxd_verify"] = _verify(core)
    class_attributes["_outboxd_credentials"] = core.get_credentials()


def _verify(core: botocore.session.Session) -> str | bool:
    """As the SDK finds it: AWS_CA_BUNDLE or `ca_bundle` of the profile, then REQUESTS_CA_BUNDLE."""
    configured = core.get_config_variable("ca_bundle")
    if configured is not None:
        return str(configured)
    return os.environ.get("REQUESTS_CA_BUNDLE", True)


def _proxied(configured: dict[str, str] | None, url: str) -> bool:
    proxies = get_environ_proxies(url) if configured is None else configured
    return bool(proxies.get(url.partition(":")[0]))
