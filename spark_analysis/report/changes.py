"""Order the changes between two dumps: what loses or endangers data comes first.

Source: the kinds are those of `placement.balance.changes`, which says when an election counts as unclean.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from placement.balance.changes import ISR_SHRUNK, LEADER_LOST, UNCLEAN_ELECTION
from spark_analysis.report.model import ShortenedList
from spark_analysis.report.rows import PartitionChange

__all__ = ("by_gravity", "gravity")

_GRAVE: Final = (UNCLEAN_ELECTION, LEADER_LOST, ISR_SHRUNK)


def gravity(change: str) -> int:
    """Return the place of a kind of change in the order of gravity, 0 for the gravest; 3 is none."""
    return _GRAVE.index(change) if change in _GRAVE else len(_GRAVE)


def by_gravity(kinds: Iterable[ShortenedList[PartitionChange]]) -> list[ShortenedList[PartitionChange]]:
    """Return the kinds of changes in this order."""
    return sorted(kinds, key=lambda kept: (gravity(kept.rows[0].change), kept.rows[0].change))
