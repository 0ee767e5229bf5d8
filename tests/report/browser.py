"""A real browser, by the DevTools protocol on a pipe: Debian's Chromium, or another one in the PATH."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One tab. `requests` are the URLs that it asked for, `errors` what its console and its policies reported."""

    def __init__(self, process: "subprocess.Popen[bytes]", commands: int, answers: int) -> None:
        self._process = process
        self._commands = os.fdopen(commands, "wb", 0)
        self._answers = os.fdopen(answers, "rb")
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._loaded = False
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command; returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        data = bytearray()
        while not data.endswith(b"\0"):
            byte = self._answers.read(1)
            assert byte, "the browser ended"
            data += byte
        message: dict[str, Any] = json.loads(data[:-1])
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(str(message["params"]["exceptionDetails"]))
            case "Log.entryAdded":
                self.errors.append(message["params"]["entry"]["text"])
            case "Page.loadEventFired":
                self._loaded = True
        return message

    def open(self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Show a page in a window of this size."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media="", features=[scheme])
        self._loaded = False
        self.requests.clear()
        self.errors.clear()
        self.send("Page.navigate", url=page.as_uri())
        while not self._loaded:
            self._next()

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_CODES[key])

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def picture(self, target: Path, *, top: int = 0, width: int = 1280, height: int = 900) -> None:
        """Save a part of the page as PNG."""
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        answer = self.send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        target.write_bytes(base64.b64decode(answer["data"]))


_CODES = {"Tab": 9, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "Escape": 27}


@contextmanager
def started(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile; it ends with the block."""
    assert PROGRAM is not None
    of_commands, commands = os.pipe()
    answers, of_answers = os.pipe()
    # The browser reads commands from descriptor 3 and writes answers to 4.
    shell = f'exec "$0" "$@" 3<&{of_commands} 4>&{of_answers}'
    options = [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
        "--hide-scrollbars", "--no-first-run", "--disable-background-networking", f"--user-data-dir={profile}",
    ]  # fmt: skip
    process = subprocess.Popen(
        ["bash", "-c", shell, PROGRAM, *options], pass_fds=(of_commands, of_answers), stderr=subprocess.DEVNULL
    )
    os.close(of_commands)
    os.close(of_answers)
    try:
        yield Browser(process, commands, answers)
    finally:
        process.terminate()
        process.wait(30)
