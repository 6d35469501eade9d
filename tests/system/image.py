"""The image of the Dockerfile, built and run without any daemon: by buildah, debootstrap, unshare.

Containers are started as a runtime would start them: the command is PID 1 of a namespace of its
own, its root is read-only, its user has a number and no name, and signals reach the command only.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from outboxd.resources import project_directory

SUITE = "bookworm"
PACKAGES = "python3,python3-venv,python-is-python3,ca-certificates"

BASE = "localhost/outboxd-test-base"
IMAGE = "localhost/outboxd-test"

USER = "10001:10001"


def build(folder: Path) -> str:
    """Build the Dockerfile on a minimal Debian; the image's name."""
    if _buildah("images", "--quiet", BASE, check=False).strip() == "":
        _build_base(folder / "debian")
    wheels = folder / "wheels"
    _download(wheels)
    _buildah(
        "bud",
        "--isolation=chroot",
        # The format that has a HEALTHCHECK.
        "--format=docker",
        f"--build-arg=BASE={BASE}",
        "--build-arg=PIP_ARGS=--no-index --find-links /wheels",
        f"--volume={wheels}:/wheels:ro",
        f"--tag={IMAGE}",
        str(project_directory()),
    )
    return IMAGE


def inspect(image: str) -> dict[str, Any]:
    """The image's own settings, as Docker names them."""
    told = json.loads(_buildah("inspect", "--type=image", image))
    settings: dict[str, Any] = told["Docker"]["config"]
    return settings


@contextmanager
def mounted(image: str) -> Iterator[Path]:
    """The image's files while the block lasts."""
    container = _buildah("from", image).strip()
    try:
        yield Path(_buildah("mount", container).strip())
    finally:
        _buildah("rm", container)


@contextmanager
def container(
    root: Path,
    command: Sequence[str],
    environ: Mapping[str, str],
    folders: Sequence[Path],
    log: Path,
    init: Sequence[str] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """A command in the image, as PID 1 or below the `init`, while the block lasts.

    `folders` are the host's, at the same place and writable. The process is that of the command or
    the init, as it is seen from outside; what is left of the namespace ends with it.
    """
    inside = ["/usr/sbin/chroot", f"--userspec={USER}", str(root), *command]
    with log.open("ab") as output, tempfile.TemporaryDirectory() as scratch:
        unshare = subprocess.Popen(
            [
                "unshare",
                "--mount",
                "--pid",
                "--fork",
                "bash",
                "-euc",
                _mounts(root, folders) + ' exec "$@"',
                "bash",
                *init,
                *inside,
            ],
            env={**environ, "PATH": "/opt/outboxd/bin:/usr/local/bin:/usr/bin:/bin"},
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield unshare
    finally:
        # By hand: the option --kill-child is forgotten as soon as the command changes its user.
        for first in _children(unshare.pid) if unshare.poll() is None else ():
            os.kill(int(first), signal.SIGKILL)
        unshare.kill()
        unshare.wait()


def credentials() -> dict[str, str]:
    """Those of this process, for the local AWS; nothing else of its environment goes inside."""
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_")}


def orphans(unshare: "subprocess.Popen[bytes]", program: str) -> int:
    """How many of the program are children of PID 1, those included that have ended and wait for
    it to take note."""
    (first,) = _children(unshare.pid)
    children = _children(int(first))
    return [Path(f"/proc/{pid}/comm").read_text().strip() for pid in children].count(program)


def terminate(unshare: subprocess.Popen[bytes]) -> int:
    """SIGTERM to PID 1, as a runtime sends it; the exit code of the container."""
    (first,) = _children(unshare.pid)
    os.kill(int(first), signal.SIGTERM)
    return unshare.wait(60)


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _mounts(root: Path, folders: Sequence[Path]) -> str:
    """Of the namespace: a root that cannot be written to, its own /proc and /tmp, the folders."""
    lines = [
        f"mount --bind {root} {root}",
        f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp",
        f"mount -t proc proc {root}/proc",
        *(f"mkdir -p {root}{each}; mount --bind {each} {root}{each}" for each in folders),
        f"mount -o remount,bind,ro {root}",
    ]
    return "; ".join(lines) + ";"


def _build_base(folder: Path) -> None:
    """A Debian with nothing but Python, in place of the official image that cannot be pulled
    everywhere."""
    _run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(folder))
    container = _buildah("from", "scratch").strip()
    _buildah("add", "--quiet", container, str(folder), "/")
    _buildah("commit", "--quiet", container, BASE)
    _buildah("rm", container)
    shutil.rmtree(folder)


def _download(wheels: Path) -> None:
    """What pip would fetch, from wherever this machine's pip fetches it."""
    _run(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(wheels)),
        *("--constraint", str(project_directory() / "constraints.txt")),
        *("hatchling", str(project_directory())),
    )


def _buildah(*arguments: str, check: bool = True) -> str:
    return _run("buildah", *arguments, check=check)


def _run(*command: str, check: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{command}: {done.stderr[-3000:]}"
    return done.stdout
