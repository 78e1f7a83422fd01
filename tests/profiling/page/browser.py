"""A real browser for tests, controlled over a pipe (Chrome's DevTools protocol)."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Enter": 13}
_SECONDS = 60.0


class Tab:
    """One page: what it was asked to load, what it complained of, and hands to work with it."""

    def __init__(self, process: "subprocess.Popen[bytes]", write: int, read: int) -> None:
        self._process = process
        self._write, self._read = write, read
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._count:
                assert "error" not in found, found
                return found["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], _SECONDS)
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 20)
            assert part, f"the browser left with {self._process.poll()}"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(params)[:1000])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {params['message']}")
        return message

    def open(self, path: Path) -> None:
        """Load a file and wait until it is drawn."""
        self.ask("Page.navigate", url=path.as_uri())
        self.until("document.readyState === 'complete'")
        self.settle()

    def value(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + _SECONDS
        while not self.value(script):
            assert time.monotonic() < end, script
            time.sleep(0.05)

    def settle(self) -> None:
        """Let what was asked for be drawn."""
        frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.value(f"{frames}.then(() => true)")

    def press(self, *keys: str) -> None:
        """Type keys one after the other."""
        for key in keys:
            text = (
                {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
            )
            code = {"windowsVirtualKeyCode": _KEYS[key]} if key in _KEYS else {}
            self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
            self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, **code)
        self.settle()

    def mouse(self, what: str, x: float, y: float, **more: Any) -> None:
        """Send one event of the mouse at a place of the window."""
        self.ask("Input.dispatchMouseEvent", type=what, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Press and let go."""
        for what in ("mousePressed", "mouseReleased"):
            self.mouse(what, x, y, button="left", clickCount=1)
        self.settle()

    def window(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Set the size of the window and the colours that the user prefers."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        wanted = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[wanted])
        self.settle()


@contextmanager
def browser(folder: Path) -> Generator[Tab]:
    """A headless Chromium with one page; the test is skipped where there is none.

    Args:
        folder: Where it keeps what it needs.
    """
    program = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("needs chromium")
    # Chrome reads from 3 and writes to 4; both ends must not lie there before they are moved.
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for pair in (os.pipe(), os.pipe()) for end in pair]
    to_read, to_write, from_read, from_write = ends

    def place() -> None:
        os.dup2(to_read, 3)
        os.dup2(from_write, 4)

    process = subprocess.Popen(
        [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
            f"--user-data-dir={folder}",
            "--remote-debugging-pipe",
            "about:blank",
        ],
        preexec_fn=place,  # noqa: PLW1509 (no lock of another thread is taken in it)
        pass_fds=(3, 4),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(from_write)
    try:
        yield Tab(process, to_write, from_read)
    finally:
        process.terminate()
        process.wait(timeout=_SECONDS)
        os.close(to_write)
        os.close(from_read)
