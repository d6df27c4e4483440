"""Wait for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS_MAX = 60


def until(condition: Callable[[], bool]) -> None:
    """Return once the condition holds."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
