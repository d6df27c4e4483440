"""What a run has left behind: processes that name its folder, and waiting for what is to come."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SECONDS_MAX = 600  # For a process with a session of its own: 15 s on an idle machine, 10 times that on a busy one.


def processes_of(folder: Path) -> list[str]:
    """Return the commands of all processes that name the folder, as the JVM of a session does."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "command="], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if str(folder) in line]


def parent_of(pid: int) -> int:
    """Return the process that started another, which still runs."""
    return int(subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, check=True).stdout)


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(10 * SECONDS_MAX):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("it never came to pass")
