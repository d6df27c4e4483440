"""Represent a log as a tuple of records that have only a number and a leader epoch, and states as small numbers.

Records with the same number are the same record; epochs never fall along a log. `Interned` numbers the values of a
table in the order in which they are first seen, so the numbers are the same in each run of the same search.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, NamedTuple, TypeVar

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


Value = TypeVar("Value", bound=Hashable)


class Interned(Generic[Value]):
    """Number the values of one table; the numbers stay below 2 ** `bits`."""

    __slots__ = ("_numbers", "limit", "values")

    def __init__(self, bits: int) -> None:
        self._numbers: dict[Value, int] = {}
        self.values: list[Value] = []
        self.limit = 1 << bits

    def number(self, value: Value) -> int:
        """Return the number of a value; a new value gets the next one."""
        known = self._numbers.get(value)
        if known is not None:
            return known
        number = len(self.values)
        assert number < self.limit, f"more than {self.limit} values in one table"
        self._numbers[value] = number
        self.values.append(value)
        return number
