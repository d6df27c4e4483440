"""Logs as plain lists of records, compared record by record: what epochs and offsets stand for."""

from __future__ import annotations

from collections.abc import Sequence

from broker.ids import LeaderEpoch, Offset
from replication.rules.partition import EpochStart, LogState

Records = Sequence[tuple[int, int]]
"""Records as (epoch, anything): two are the same record if they are equal and stand at the same offset."""


def common_prefix(one: Records, other: Records) -> int:
    """The number of records from the start that two logs share."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def state_of(records: Records, *, leads: int | None = None) -> LogState:
    """What the rules see of a log; `leads` is the epoch that its owner leads and has noted."""
    starts: dict[int, int] = {}
    for offset, (epoch, _) in enumerate(records):
        starts.setdefault(epoch, offset)
    if leads is not None:
        starts.setdefault(leads, len(records))
    noted = tuple(EpochStart(LeaderEpoch(epoch), Offset(start)) for epoch, start in sorted(starts.items()))
    return LogState(Offset(0), Offset(len(records)), Offset(0), noted)
