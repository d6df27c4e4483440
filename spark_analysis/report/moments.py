"""The moments of clusters that were dumped several times: fenced brokers, and partitions in each state.

All moments of a cluster stand together, in their order; the last one is now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from placement.balance.changes import ISR_SHRUNK, LEADER_LOST, UNCLEAN_ELECTION
from spark_analysis.report.model import ClusterRow, Report, ShortenedList
from spark_analysis.report.rows import PartitionChange
from spark_analysis.report.states import STATES, State

__all__ = ("MOMENTS_MAX", "by_gravity", "fenced_brokers", "gravity", "places", "state_heads", "states_known")

MOMENTS_MAX: Final = 100
_GRAVE: Final = (UNCLEAN_ELECTION, LEADER_LOST, ISR_SHRUNK)


def states_known(rows: Sequence[ClusterRow]) -> list[State]:
    """Return the states that some of the rows show."""
    return [state for state in STATES if any(state.of(row.facts) is not None for row in rows)]


def state_heads(states: Iterable[State]) -> str:
    """Return the heads of a column for each state."""
    return "".join(f"|#{state.short}@{state.key}" for state in states)


def places(rows: Iterable[ClusterRow]) -> set[int]:
    """Return the places of the rows in the report."""
    return {row.place for row in rows}


def fenced_brokers(report: Report, rows: Iterable[ClusterRow]) -> dict[int, str] | None:
    """Return the fenced brokers of the clusters that are shown in full, by place; None if no row has any."""
    if not any(row.facts.fenced_broker_count for row in rows):
        return None
    return {place: ", ".join(map(str, brokers)) or "none" for place, brokers in _fenced(report).items()}


def moments_json(report: Report) -> list[dict[str, Any]]:
    """Return the moments for programs: which brokers were fenced, and the states; at most the first hundred."""
    fenced = _fenced(report)
    now = {row.place for row in report.current_rows}
    return [
        {
            "cluster": row.facts.cluster,
            "is_now": row.place in now,
            "fenced_broker_count": row.facts.fenced_broker_count,
            "fenced_brokers": fenced.get(row.place),
            **{state.field: state.of(row.facts) for state in STATES},
            "worst": None if row.healthy else row.worst,
        }
        for row in report.moments[:MOMENTS_MAX]
    ]


def _fenced(report: Report) -> dict[int, list[int]]:
    return {
        detail.row.place: sorted(broker.broker_id for broker in detail.brokers if broker.fenced)
        for detail in report.details
    }


def gravity(change: str) -> int:
    """Return the place of a kind of change in the order of gravity, 0 for the gravest; 3 is none."""
    return _GRAVE.index(change) if change in _GRAVE else len(_GRAVE)


def by_gravity(kinds: Iterable[ShortenedList[PartitionChange]]) -> list[ShortenedList[PartitionChange]]:
    """Return the kinds of changes in this order."""
    return sorted(kinds, key=lambda kept: (gravity(kept.rows[0].change), kept.rows[0].change))
