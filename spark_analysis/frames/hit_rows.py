"""List the partitions that losing each rack, or each broker, brings into a bad state.

A partition is hit by a loss if it is without a leader, under min-ISR, without a live replica or at risk after it, and
was not before. States are those that `brokerside outage` counts.

Source: placement/outages/lost.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker.cluster import ClusterView, Int32Array
from broker.errors import UsageError
from placement.outages.lost import After, after_loss
from placement.outages.succession import BoolArray, Successions, successions
from spark_analysis.tables.columns import KEY
from spark_analysis.tables.limits import OUTAGE_BROKERS_MAX, check_listed
from spark_analysis.tables.schemas import HIT

SCOPES: Final = ("rack", "broker")
_STATES: Final = ("is_leaderless", "is_under_min_isr", "has_no_replica", "is_at_risk")


def hit_table(view: ClusterView, scope: str) -> pa.Table:
    """Return the partitions of one cluster that each loss hits; raise UsageError where that is not known."""
    check_outages(view)
    if scope == "rack" and not view.racks:
        raise UsageError(f"no broker of cluster {view.name!r} is in a known rack, so that no rack can be lost")
    found = successions(view)
    before = _states(found, after_loss(found, np.zeros(len(view.brokers), np.bool_)))
    parts = []
    racks = np.array([one.rack or "" for one in view.brokers], dtype=object)
    for lost in sorted(view.racks) if scope == "rack" else view.broker_ids.tolist():
        gone = racks == lost if scope == "rack" else view.broker_ids == lost
        after = after_loss(found, gone.astype(np.bool_))
        states = _states(found, after)
        rows = np.flatnonzero((states & ~before).any(axis=0))
        parts.append(_rows(view, found, (scope, lost), (after, states), rows))
    fields = [pa.field(field.name, field.type) for field in list(HIT.arrow_schema())[len(KEY) :]]
    schema = pa.schema(fields)
    return pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])


def check_outages(view: ClusterView) -> None:
    """Raise UsageError for a cluster of which outages are not looked for."""
    if len(view.brokers) > OUTAGE_BROKERS_MAX:
        raise UsageError(
            f"cluster {view.name!r} has {len(view.brokers):,} brokers; outages are looked for up to "
            f"{OUTAGE_BROKERS_MAX:,}"
        )
    check_listed(view, "outages are not known")


def _states(found: Successions, after: After) -> BoolArray:
    """Return bool[4, P]: which partitions are in each of the states, in order."""
    leaderless = after.leader < 0
    under = (found.min_isr >= 0) & (leaderless | (after.isr_count < found.min_isr))
    return np.stack([leaderless, under, ~after.replica, ~after.clean])


def _rows(
    view: ClusterView, found: Successions, lost: tuple[str, Any], state: tuple[After, BoolArray], rows: Any
) -> pa.Table:
    (scope, name), (after, states), table = lost, state, view.partitions
    count, names = rows.size, pa.array([topic.name for topic in view.topics], pa.string())
    ids: Int32Array = np.append(view.broker_ids, np.int32(-1))
    columns: dict[str, Any] = {
        "scope": pa.array([scope] * count, pa.string()),
        "broker_id": pa.array([name if scope == "broker" else None] * count, pa.int32()),
        "rack": pa.array([name if scope == "rack" else None] * count, pa.string()),
        "topic": names.take(pa.array(table.topic_index[rows])),
        "partition": table.partition_ids[rows],
        "leader": ids[after.leader[rows]],
        "isr_count": after.isr_count[rows],
    }
    for state_name, mask in zip(_STATES, states, strict=True):
        unknown = found.min_isr[rows] < 0 if state_name == "is_under_min_isr" else None
        columns[state_name] = pa.array(mask[rows], mask=unknown)
    return pa.table(columns)
