"""Opens connections as strictly as the AWS SDK does, and with its errors."""

import os
import socket
import ssl

from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)
from botocore.httpsession import create_urllib3_context, get_cert_path

from outboxd.adapters.aws.transport.targets import Target


class Opener:
    """Opens connections to one target."""

    def __init__(
        self,
        target: Target,
        url: str,
        *,
        connect_seconds: float,
        keepalive: bool,
        verify: str | bool,
    ) -> None:
        """`keepalive`: probes of TCP; `verify`: a file of certificates, or True for the SDK's."""
        self._target = target
        self._url = url
        self._seconds = connect_seconds
        self._keepalive = keepalive
        self._verify = verify
        self._context: ssl.SSLContext | None = None

    def open(self) -> socket.socket:
        """Raises what the SDK raises, and OSError for a connection that ends meanwhile."""
        connected = self._connect()
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._keepalive:
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return self._secured(connected) if self._target.secure else connected
        except BaseException:
            connected.close()
            raise

    def _connect(self) -> socket.socket:
        try:
            return socket.create_connection((self._target.host, self._target.port), self._seconds)
        except TimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=self._url, error=error) from error
        except OSError as error:
            raise EndpointConnectionError(endpoint_url=self._url, error=error) from error

    def _secured(self, connected: socket.socket) -> ssl.SSLSocket:
        try:
            context = self._context = self._context or _context(self._verify)
        except OSError as error:  # ssl.SSLError is one: no such file, or no certificates in it
            raise SSLError(endpoint_url=self._url, error=error) from error
        try:
            return context.wrap_socket(connected, server_hostname=self._target.host.rstrip("."))
        except ssl.SSLError as error:
            # The next try reads the file of certificates anew: it may have been renewed.
            self._context = None
            raise SSLError(endpoint_url=self._url, error=error) from error
        except TimeoutError as error:
            raise ReadTimeoutError(endpoint_url=self._url, error=error) from error
        except OSError as error:
            raise ConnectionClosedError(endpoint_url=self._url, error=error) from error


def _context(verify: str | bool) -> ssl.SSLContext:
    """The SDK's own, which leaves the check of the host's name to urllib3: here OpenSSL does it."""
    context: ssl.SSLContext = create_urllib3_context()
    context.check_hostname = True
    context.set_alpn_protocols(["http/1.1"])
    certificates = verify if isinstance(verify, str) else get_cert_path(True)
    context.load_verify_locations(os.path.expanduser(str(certificates)))
    return context
