"""Represent a log as a tuple of records that hold no more than their number and leader epoch.

What it decides: how such a log looks to the rules: which epochs it knows, and where they begin.

Constraints: a record is the same record wherever its number is the same; epochs never fall along a log that the
rules have made.

Example: (m0 of epoch 0, m1 of epoch 2) knows epoch 0 from offset 0 and epoch 2 from offset 1.

Left out: batches, bytes, and a start other than offset 0.

Source: ours.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from replication.rules.partition import EpochStart

LATER: Final = TimeMs(10**9)
"""A time at which nobody counts as caught up for what was long ago: how long a follower lags is not modelled."""


class Record(NamedTuple):
    """One record: its number among all records ever written, and the leader epoch it was appended in."""

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
    """Return a log for people: m0@0 m1@2, or the word empty."""
    return " ".join(f"m{record.number}@{record.epoch}" for record in log) or "empty"
