"""Starting a child that cannot be started whole."""

import errno
import os
import signal

import anyio
import pytest
from anyio.abc import Process

from tests.supervision.scene import scripted

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")


async def test_a_child_for_which_no_descriptor_is_left_does_not_live_on_unwatched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Process] = []
    open_process = anyio.open_process

    async def remember(*arguments: object, **options: object) -> Process:
        started.append(await open_process(*arguments, **options))  # type: ignore[arg-type]
        return started[0]

    def none_left(pid: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(anyio, "open_process", remember)
    monkeypatch.setattr(os, "pidfd_open", none_left, raising=False)

    with pytest.raises(OSError, match="Too many"):
        await scripted(monkeypatch.setenv)("relay")

    with anyio.fail_after(10):
        assert await started[0].wait() == -signal.SIGKILL
