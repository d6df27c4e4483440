"""Check that a Spark master or Connect server takes connections, before Spark's client waits minutes for it.

What it decides: how long is waited, and what is said of an address at which nobody listens.

Source: ours.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Final

from spark_analysis.session.java import SessionError

REACH_SECONDS_MAX: Final = 10


def reach(what: str, addresses: Sequence[tuple[str, int]]) -> None:
    """Connect to the first address that takes a connection; raise `SessionError`, which names `what`, if none does."""
    missing = []
    for host, port in addresses:
        try:
            socket.create_connection((host, port), timeout=REACH_SECONDS_MAX).close()
        except OSError as error:
            reason = error.strerror or f"no answer within {REACH_SECONDS_MAX} s"
            missing.append(f"{host}:{port}: {reason.lower()}")
        else:
            return
    raise SessionError(f"no {what} can be reached at {'; '.join(missing)}")
