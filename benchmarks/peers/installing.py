"""Installs the peers, pinned, into environments of their own below build/."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.peers.peer import HOME, NODE, PYTHON, Peer

HERE = Path(__file__).parent
PINS = HERE / "requirements.txt"
PACKAGE, LOCK = HERE / "package.json", HERE / "package-lock.json"
LIMIT_SECONDS = 300
ADDRESS = re.compile(r"\w+://\S+")
NODE_NAMES = ("sqs-consumer", "@aws-sdk/client-sqs")


def install(peers: Iterable[Peer], say: Callable[[str], None]) -> dict[str, str]:
    """Install what is not there yet; by name, those that cannot be had, and why."""
    absent: dict[str, str] = {}
    tried: dict[tuple[str, ...], str | None] = {}
    for peer in peers:
        if peer.packages not in tried:
            tried[peer.packages] = _python(peer.packages, say) if peer.packages else _node(say)
        if (reason := tried[peer.packages]) is not None:
            absent[peer.name] = reason
    return absent


def versions(peers: Iterable[Peer]) -> dict[str, str]:
    """Of what is installed for these."""
    pins = dict(line.split("==") for line in PINS.read_text().splitlines() if "==" in line)
    found: dict[str, str] = {}
    for peer in peers:
        for package in peer.packages:
            name = package.partition("[")[0]
            if not name.startswith("psycopg"):
                found[name] = pins[name]
        if not peer.packages:
            declared = json.loads(PACKAGE.read_text())["dependencies"]
            found |= {name: declared[name] for name in NODE_NAMES}
            found["node"] = _said("node", "--version")
    return found


def _python(packages: tuple[str, ...], say: Callable[[str], None]) -> str | None:
    """One environment for all; a package that fails leaves those of the others as they are."""
    stamp = HOME / f"{_digest(PINS, *packages)}.installed"
    if stamp.exists():
        return None
    say(f"installing {', '.join(packages)}")
    steps: list[list[str | Path]] = []
    if not (PYTHON / "bin" / "python").exists():
        steps.append([sys.executable, "-m", "venv", PYTHON])
    steps.append(
        [
            PYTHON / "bin" / "python", "-m", "pip", "install", "--quiet",
            "--disable-pip-version-check", "--constraint", PINS, *packages,
        ]
    )  # fmt: skip
    return _done(steps, HOME, stamp)


def _node(say: Callable[[str], None]) -> str | None:
    missing = [program for program in ("node", "npm") if shutil.which(program) is None]
    if missing:
        return f"there is no {' and no '.join(missing)} on this machine"
    stamp = HOME / f"{_digest(LOCK)}.installed"
    if stamp.exists():
        return None
    say("installing sqs-consumer")
    NODE.mkdir(parents=True, exist_ok=True)
    for path in (PACKAGE, LOCK):
        shutil.copy(path, NODE)
    return _done([["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]], NODE, stamp)


def _done(steps: list[list[str | Path]], folder: Path, stamp: Path) -> str | None:
    """None once all have succeeded, which is remembered; else what the first to fail said."""
    folder.mkdir(parents=True, exist_ok=True)
    for step in steps:
        try:
            run = subprocess.run(
                step, cwd=folder, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"it could not be installed: {error}"
        if run.returncode != 0:
            return f"it could not be installed: {_reason(run.stderr + run.stdout)}"
    stamp.touch()
    return None


def _reason(said: str) -> str:
    """The first line that tells of an error, without the address of anybody's index."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return ADDRESS.sub("(address)", (errors or lines or ["it does not say why"])[0])


def _digest(path: Path, *more: str) -> str:
    return hashlib.sha256(path.read_bytes() + " ".join(more).encode()).hexdigest()[:16]


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
