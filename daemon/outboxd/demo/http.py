"""Questions to the supervisor's HTTP endpoint."""

import http.client

TIMEOUT_SECONDS = 2.0


def get(address: str, path: str) -> tuple[int, str] | None:
    """Status and text of `path` at `host:port`; None when nobody answers (yet, or any more)."""
    # http.client and not urllib.request, which would send this through a configured proxy.
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
