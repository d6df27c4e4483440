"""A headless Chromium driven over a pipe: the few commands of the DevTools protocol that the tests need.

No driver program and no port: messages are JSON with a zero byte after each, on file
descriptors 3 (to the browser) and 4 (from it).

Source: Chromium's --remote-debugging-pipe; chromedevtools.github.io/devtools-protocol.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
ANSWER_SECONDS_MAX: Final = 60
FLAGS: Final = (
    "--headless",
    "--no-sandbox",  # Root has no other way, and the page is ours.
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # Containers often have a tiny /dev/shm.
    "--remote-debugging-pipe",
)

# Puts the pipe's ends where Chromium expects them; they are moved up first, lest one overwrite the other.
LAUNCHER: Final = (
    "import fcntl, os, sys\n"
    "ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]\n"
    "os.dup2(ends[0], 3)\n"
    "os.dup2(ends[1], 4)\n"
    "os.execv(sys.argv[3], sys.argv[3:])\n"
)


def find_chromium() -> str | None:
    """Return the path of a Chromium, None when there is none on PATH."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Chromium:
    """One browser with one page; `events` gathers everything it reports, in order."""

    def __init__(self, program: str, profile: Path) -> None:
        to_read, self._to = os.pipe()
        self._from, from_write = os.pipe()
        ends = (str(to_read), str(from_write))
        options = (*FLAGS, f"--user-data-dir={profile}", "--window-size=1200,900")
        arguments = [sys.executable, "-c", LAUNCHER, *ends, program, *options]
        self._process = subprocess.Popen(
            arguments, pass_fds=(to_read, from_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_read)
        os.close(from_write)
        self._buffer = b""
        self._last_id = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._to)
        self._process.terminate()
        self._process.wait(ANSWER_SECONDS_MAX)
        os.close(self._from)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], ANSWER_SECONDS_MAX)
            data = os.read(self._from, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("Chromium does not answer")
            self._buffer += data
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        return message

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result; what happens meanwhile goes into `events`."""
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, address: str) -> None:
        """Open an address and wait until it has loaded; from an empty page, lest it be a place on the same one."""
        for url in ("about:blank", address):
            self.events.clear()
            self.call("Page.navigate", url=url)
            while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
                self.events.append(self._message())

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def of(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of every event of one kind since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") == method]
