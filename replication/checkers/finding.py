"""Describe a violated invariant: its code, its time and partition, and what was seen."""

from __future__ import annotations

import attrs

from broker.units import TimeMs


@attrs.frozen
class Finding:
    """Describe one violation; `code` is a key of `INVARIANTS`, `partition` is -1 for none."""

    code: str
    at_ms: TimeMs
    partition: int
    what: str

    def __str__(self) -> str:
        where = "" if self.partition < 0 else f", partition {self.partition}"
        return f"{self.code} broken at {self.at_ms} ms{where}: {self.what}"
