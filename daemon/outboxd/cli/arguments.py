"""What several commands take, and how the configuration file is found."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from outboxd.core.errors import SettingsError

CONFIG_VARIABLE = "OUTBOXD_CONFIG"
CONFIG_PLACES = (Path("outboxd.toml"), Path("config/outboxd.toml"))


def add_config_argument(parser: argparse.ArgumentParser) -> None:
    """`--config PATH`, as `arguments.config`: a Path once `require_config` has looked at it."""
    parser.add_argument(
        "--config",
        type=Path,
        default=default_config(os.environ),
        metavar="PATH",
        help=(
            f"the configuration file (default: ${CONFIG_VARIABLE}, else ./outboxd.toml, "
            "else ./config/outboxd.toml)"
        ),
    )


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """`--json`, as `arguments.json`: one document on standard output, for programs."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def default_config(environ: Mapping[str, str]) -> Path | None:
    """The file that a command reads when it is not told one; None if nobody has named one and
    there is none in the usual places."""
    if named := environ.get(CONFIG_VARIABLE):
        return Path(named)
    return next((place for place in CONFIG_PLACES if place.exists()), None)


def require_config(arguments: argparse.Namespace) -> None:
    """Raises SettingsError when the command reads a configuration and there is none to read."""
    if "config" in arguments and arguments.config is None:
        places = " nor ".join(f"./{place}" for place in CONFIG_PLACES)
        remedy = f"name the configuration with --config or {CONFIG_VARIABLE}"
        raise SettingsError([f"there is neither {places}; {remedy}"])


def port(text: str) -> int:
    """A TCP port for argparse; 0 is one, for servers that take a free one."""
    if not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 0 to 65535")
    return int(text)


def seconds(text: str) -> float:
    """A number of seconds for argparse, above 0 and at most an hour."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0 and at most 3600")
    return value


def count(text: str) -> int:
    """A number of things for argparse, at least one."""
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 1000000")
    return int(text)


def http_url(text: str) -> SplitResult:
    """The address of a running daemon for argparse."""
    url = urlsplit(text)
    if url.scheme != "http" or not url.hostname:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form http://host:port/path")
    try:
        _ = url.port
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    return url
