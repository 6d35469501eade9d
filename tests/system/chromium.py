"""A headless Chromium of the test's own, spoken to over a pipe (the DevTools protocol)."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

ANSWER_SECONDS = 60.0

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"),
)


class Browser:
    """One page in it."""

    def __init__(self, read: int, write: int) -> None:
        self._read = read
        self._write = write
        self._left = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.requested: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What Chromium answers."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_SECONDS
        while (told := self._next(deadline)).get("id") != number:
            self._note(told)
        assert "error" not in told, (method, told)
        return dict(told["result"])

    def look(
        self, width: int, *, scheme: Literal["light", "dark"] = "light", scripts: bool = True
    ) -> None:
        """What the next pages are shown with."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def open(self, url: str) -> None:
        """Load a page, to its end."""
        # By way of an empty one, so that nothing which the last page did is taken for this one's.
        self.call("Page.navigate", url="about:blank")
        self.until("location.href === 'about:blank' && document.readyState === 'complete'")
        self.requested.clear()
        self.complaints.clear()
        self.call("Page.navigate", url=url)
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'")

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, (expression, answer)
        return answer["result"].get("value")

    def until(self, expression: str, seconds: float = 30.0) -> None:
        """Wait for a fact in the page."""
        deadline = time.monotonic() + seconds
        while not self._holds(expression):
            assert time.monotonic() < deadline, f"never true: {expression}"
            time.sleep(0.05)

    def _holds(self, expression: str) -> bool:
        """False also while the page that could tell is being replaced by another."""
        guarded = f"(() => {{ try {{ return !!({expression}); }} catch {{ return false; }} }})()"
        return bool(self.ask(guarded))

    def screenshot(self, path: Path) -> None:
        """The whole page as it is now."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _note(self, told: dict[str, Any]) -> None:
        parameters = told.get("params", {})
        match told.get("method"):
            case "Log.entryAdded":
                self.complaints.append(parameters["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(parameters["exceptionDetails"]))
            case "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])
            case _:
                pass

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "Chromium does not answer"
            read = os.read(self._read, 1 << 16)
            assert read, "Chromium has ended"
            self._left += read
        message, _, self._left = self._left.partition(b"\0")
        return dict(json.loads(message))


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """Runs while the block lasts; `folder` gets its profile and its log."""
    binary = shutil.which("chromium")
    assert binary, "chromium is a Debian package: see tests/system/install-packages"
    their_read, our_write = os.pipe()
    our_read, their_write = os.pipe()
    profile = folder / "chromium"
    profile.mkdir()
    # It wants its pipe at 3 and 4, which only a shell can promise it.
    script = f'exec "$@" 3<&{their_read} 4>&{their_write}'
    with (folder / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", script, "bash", binary, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(their_read, their_write),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    os.close(their_read)
    os.close(their_write)
    try:
        browser = Browser(our_read, our_write)
        yield browser
    finally:
        # It ends, with all of its processes, when its pipe does.
        for end in (our_write, our_read):
            os.close(end)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        if process.poll() is None:
            process.kill()
            process.wait(20)
