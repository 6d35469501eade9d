"""The demo's configuration with its references filled in, so that other commands can use it."""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from outboxd.core.errors import SettingsError
from outboxd.core.references import expand
from outboxd.demo.aws import region
from outboxd.demo.options import DemoOptions
from outboxd.resources import project_directory

PORT_VARIABLE = "OUTBOXD_DEMO_PORT"


class Addresses(Struct, frozen=True, kw_only=True):
    """Where everybody is whom the shop's handlers talk to."""

    smtp_host: str
    smtp_port: int
    partners: str
    s3_and_ses: str


class Configuration:
    """The file of one run: config/demo.toml with everything in it."""

    def __init__(
        self, folder: Path, dsn: str, endpoint: str, addresses: Addresses, options: DemoOptions
    ) -> None:
        project = project_directory()
        self.path = folder / "outboxd.toml"
        self._template = (project / "config" / "demo.toml").read_text(encoding="utf-8")
        self._values = {
            "OUTBOXD_DEMO_IMPORT_PATH": str(project),
            "OUTBOXD_DEMO_DATABASE_URL": dsn,
            "OUTBOXD_DEMO_AWS_ENDPOINT": endpoint,
            "OUTBOXD_DEMO_AWS_REGION": region(),
            "OUTBOXD_DEMO_PREFIX": _prefix(options),
            "OUTBOXD_DEMO_SMTP_HOST": addresses.smtp_host,
            "OUTBOXD_DEMO_SMTP_PORT": str(addresses.smtp_port),
            "OUTBOXD_DEMO_PARTNERS": addresses.partners,
            "OUTBOXD_DEMO_S3_AND_SES": addresses.s3_and_ses,
        }
        self.write(options.port)

    def write(self, port: int) -> None:
        """Write the file; again once it is known which port a 0 became."""
        # It stays a reference, with another default: only of a reference a number can be made.
        reference = f"${{{PORT_VARIABLE}:-{port}}}"
        rendered = render(self._template, {**self._values, PORT_VARIABLE: reference})
        self.path.write_text(rendered, encoding="utf-8")


def render(template: str, values: Mapping[str, str]) -> str:
    """The template with `values` inside its strings. Raises SettingsError for one that is missing.

    Values stand in basic strings of TOML, which escape as those of JSON do.
    """
    escaped = {name: json.dumps(value, ensure_ascii=False)[1:-1] for name, value in values.items()}
    rendered = expand(template, escaped)
    if rendered.problems:
        raise SettingsError(rendered.problems)
    return rendered.text


def _prefix(options: DemoOptions) -> str:
    """Of the queues' names; on a service that is not ours others may have the plain ones."""
    return "" if options.aws_endpoint is None else f"outboxd-demo-{secrets.token_hex(4)}-"
