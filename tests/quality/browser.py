"""A real Chromium that is driven over a pipe: pages at a size and in a scheme, real keys, roles, pictures.

The protocol is Chromium's own for developers. It needs no package and opens no port.
"""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-extensions", "--force-device-scale-factor=1"),
    *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe", "--hide-scrollbars"),
)
DEADLINE_S = 60.0
BEHIND_ITS_OWN = 5
KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38, "Tab": 9, "Enter": 13, "Home": 36, " ": 32}


class Tab:
    """One tab of a browser."""

    def __init__(self, profile: Path) -> None:
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        reads, writes = (fcntl.fcntl(each, fcntl.F_DUPFD, BEHIND_ITS_OWN) for each in (to_read, to_write))
        # A shell gives the browser both ends under the numbers at which it expects them.
        words = ["bash", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "bash", str(BROWSER), *QUIET]
        self._process = subprocess.Popen(
            [*words, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for each in (to_read, to_write, reads, writes):
            os.close(each)
        self._numbers, self._rest, self._session = itertools.count(1), b"", ""
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def look(self, width: int, scheme: str, height: int = 900) -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url: str) -> None:
        self.errors, self.requests = [], []
        self.ask("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        done = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def until(self, expression: str) -> Any:
        return wait(lambda: self.value(expression), expression)

    def text(self, selector: str) -> str:
        return str(self.value(f"document.querySelector({json.dumps(selector)}).textContent"))

    def press(self, key: str) -> None:
        named = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
        named |= {"text": "\r" if key == "Enter" else " "} if key in ("Enter", " ") else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **named)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **named)

    def roles(self) -> list[tuple[str, str]]:
        """Return what a screen reader gets: the role and the name of each node."""
        nodes = self.ask("Accessibility.getFullAXTree")["nodes"]
        seen = [node for node in nodes if not node.get("ignored")]
        return [(node["role"]["value"], str(node.get("name", {}).get("value", ""))) for node in seen]

    def picture(self, path: Path, *, whole: bool = False) -> None:
        done = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(done["data"]))

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._out)
        self._process.kill()
        self._process.wait()
        os.close(self._in)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        whole, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(whole)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"].get("exception", {}).get("description")))
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


def wait(predicate: Callable[[], T], what: str) -> T:
    until_s = time.monotonic() + DEADLINE_S
    while not (found := predicate()):
        assert time.monotonic() < until_s, f"waited in vain for {what}"
        time.sleep(0.05)
    return found


@contextmanager
def tab(profile: Path) -> Iterator[Tab]:
    opened = Tab(profile)
    try:
        yield opened
    finally:
        opened.close()
