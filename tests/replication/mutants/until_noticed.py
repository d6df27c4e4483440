"""Make checks one after the other for some CPU seconds, until one of them notices something.

What it decides: what a check raises is noticed like what it says. The status is that of the process: 1 if something
was noticed, 0 if the checks or the time ran out before.

Source: ours.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable

import attrs


@attrs.frozen
class Check:
    """Hold one check: its name, and a call that says what it noticed, "" if nothing."""

    name: str
    call: Callable[[], str]

    def noticed(self) -> str:
        """Return what the call says or raises, "" if nothing."""
        try:
            return self.call()
        except Exception:
            return traceback.format_exc(limit=-1).splitlines()[-1]


def until_noticed(checks: Iterable[Check], cpu_seconds: float, unit: str) -> int:
    """Make the checks until the CPU seconds are spent or one notices something; print that and return the status."""
    count = 0
    for check in checks:
        if time.process_time() >= cpu_seconds:
            break
        told = check.noticed()
        count += 1
        if told:
            print(f"{check.name}: {told}")
            return 1
    print(f"nothing in {count} {unit}")
    return 0
