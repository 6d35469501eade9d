"""The configuration file as the source of reloads, read in a process that is thrown away."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
from anyio.abc import Process

from outboxd.core.children import ChildSpec, children_of
from outboxd.core.errors import SettingsError
from outboxd.core.reloading import Candidate
from outboxd.core.settings import Settings
from outboxd.supervision.process import Grip, environment_of_children
from outboxd.version import __version__

REAP_SECONDS = 5.0
MAX_ANSWER_BYTES = 1 << 21

_Answer = TypeVar("_Answer")


class _Stamp(msgspec.Struct, frozen=True):
    """What can be read of the answer of every version."""

    version: str


class ConfigurationFile:
    """Implements reloading.Source.

    The supervisor itself never parses the file again: what was checked is what it is told, even if
    the file changes meanwhile.
    """

    def __init__(
        self,
        path: Path,
        only: str | None,
        adopted: Callable[[Settings], None],
        *,
        seconds: float,
        module: str = "outboxd.candidate",
    ) -> None:
        """`only` is the part that this daemon runs; `adopted` is told what is in use from now on.
        `seconds` bounds the imports, until a configuration that is adopted says otherwise."""
        self._path = path
        self._only = only
        self._adopted = adopted
        self._seconds = seconds
        self._module = module

    async def read(self) -> Settings:
        """The configuration, its handlers imported. Raises SettingsError when it is not usable."""
        answer = await self._ask()
        # Before anything else: settings of another version may have keys that are unknown here.
        installed = _understood(answer, _Stamp).version
        if installed != __version__:
            raise SettingsError(
                [
                    f"outboxd {installed} is installed now, and this is {__version__}: "
                    "restart it to use the new one"
                ]
            )
        candidate = _understood(answer, Candidate)
        if candidate.settings is None:
            raise SettingsError(candidate.problems)
        return candidate.settings

    def children(self, settings: Settings) -> Sequence[ChildSpec]:
        return children_of(settings, self._only)

    def adopted(self, settings: Settings) -> None:
        self._seconds = settings.supervisor.start_deadline_seconds
        self._adopted(settings)

    async def _ask(self) -> bytes:
        try:
            process = await self._start()
            grip = _grip_on(process)
        except OSError as error:
            raise SettingsError([f"the configuration cannot be checked: {error}"]) from error
        try:
            with anyio.fail_after(self._seconds):
                return await _all_of(process)
        except TimeoutError:
            raise SettingsError(
                [
                    f"{self._path}: importing its handlers took more than {self._seconds:g} s, the "
                    "start_deadline_seconds in use, so no child would become ready; for a longer "
                    "one restart outboxd"
                ]
            ) from None
        finally:
            await _end(process, grip)

    async def _start(self) -> Process:
        return await anyio.open_process(
            [
                *(sys.executable, "-P", "-m", self._module, os.fspath(self._path)),
                *("--supervisor", str(os.getpid()), "--seconds", str(int(self._seconds) + 10)),
                *(() if self._only is None else ("--only", self._only)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None,
            env=environment_of_children(),
        )


async def _all_of(process: Process) -> bytes:
    assert process.stdout is not None
    answer = b""
    async for part in process.stdout:
        answer += part
        if len(answer) > MAX_ANSWER_BYTES:
            return b""
    return answer


def _grip_on(process: Process) -> Grip:
    try:
        return Grip(process)
    except OSError:  # no descriptor is left for its pidfd
        process.kill()
        raise


async def _end(process: Process, grip: Grip) -> None:
    """It has answered, or it will not: it is of no more use."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(REAP_SECONDS):
        grip.signal(signal.SIGKILL)
        await process.wait()
        await process.aclose()
    grip.close()


def _understood(answer: bytes, kind: type[_Answer]) -> _Answer:
    try:
        return msgspec.msgpack.decode(answer, type=kind)
    except msgspec.DecodeError:
        raise SettingsError(
            ["the process that checks the configuration ended before it was done; see the log"]
        ) from None
