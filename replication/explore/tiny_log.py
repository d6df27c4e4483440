"""Represent a log as a tuple of records; a record has only a number and a leader epoch.

Records with the same number are the same record; epochs never fall along a log.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from replication.rules.partition import EpochStart

LATER: Final = TimeMs(10**9)
"""A time so late that no follower counts as caught up by an earlier fetch; the length of a lag is not modelled."""


class Record(NamedTuple):
    """Hold one record: its number among all records ever written, and the leader epoch of its append."""

    number: int
    epoch: int


def epochs_of(log: tuple[Record, ...]) -> tuple[EpochStart, ...]:
    """Return the epoch cache of a log: each leader epoch with its first offset."""
    epochs: list[EpochStart] = []
    for offset, record in enumerate(log):
        if not epochs or epochs[-1].epoch != record.epoch:
            epochs.append(EpochStart(LeaderEpoch(record.epoch), Offset(offset)))
    return tuple(epochs)


def shown(log: tuple[Record, ...]) -> str:
    """Return a log as text: m0@0 m1@2, or the word empty."""
    return " ".join(f"m{record.number}@{record.epoch}" for record in log) or "empty"
