"""Turn the counts of many simulated clusters into rows of the tables.

Left out: columns that are the same for clusters of any origin (tables/spreads.py, tables/staging.py).

Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker.cluster import Int64Array
from spark_analysis.fleet.count import Placed
from spark_analysis.fleet.generate import NO_RACK
from spark_analysis.fleet.shares import best_of_each_rack, broker_numbers, shares_of_brokers, shares_of_racks
from spark_analysis.fleet.views import SIMULATED, cluster_name, topic_names
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import NOT_KNOWN, ClusterRows, Part, Rows, Shares
from spark_analysis.tables.view_rows import violation_rows

_COUNTS: Final = (
    "broker_count",
    "fenced_broker_count",
    "unracked_broker_count",
    "rack_count",
    "rack_broker_count_min",
    "rack_broker_count_max",
    "topic_count",
    "partition_count",
)


def describe_placed(placed: Sequence[Placed], source: str) -> ClusterRows:
    """Return the rows of the tables for these counted clusters of the recipe named `source`."""
    held = np.concatenate([one.held for one in placed], axis=1)
    racks = np.concatenate([one.racks for one in placed], axis=1)
    broker_counts = np.array([one.cluster.broker_count for one in placed])
    brokers = np.concatenate([broker_numbers(count) for count in broker_counts.tolist()])
    fenced = np.concatenate([one.cluster.fenced for one in placed])
    never = np.zeros(fenced.size, dtype=np.bool_)  # No recipe cordons or stops brokers.
    rack_names = [name for one in placed for name in _rack_names(one)]
    tables = {
        schemas.BROKERS: Rows(
            broker_counts,
            (brokers, _racks_of_brokers(placed), fenced, *held, np.where(fenced, held[0], 0), never, never),
        ),
        schemas.RACKS: Rows([one.racks.shape[1] for one in placed], (rack_names, *racks, *best_of_each_rack(placed))),
        schemas.VIOLATIONS: violation_rows([one.broken.listed for one in placed]),
    }
    shares = [shares_of_brokers(placed, held[:, ~fenced]), shares_of_racks(placed)]
    spreads = [one.spread for one in placed if one.spread is not None]
    if spreads:
        rows, spread_shares = _topics(placed, np.concatenate(spreads, axis=1))
        tables[schemas.TOPICS] = rows
        shares += [spread_shares]
    firsts = np.cumsum(broker_counts) - broker_counts
    totals = {"replica_count": np.add.reduceat(held[0], firsts), "size_bytes": np.add.reduceat(held[2], firsts)}
    return ClusterRows([one.placer for one in placed], _facts(placed, source) | totals, tables, tuple(shares))


def _facts(placed: Sequence[Placed], source: str) -> dict[str, Part]:
    clusters = [one.cluster for one in placed]
    counts = np.array([_counts(one) for one in placed]).T
    counted = dict(zip(_COUNTS, counts, strict=True))
    broken = {name: [one.broken.counts[name] for one in placed] for name in placed[0].broken.counts}
    names = {
        "cluster": [cluster_name(cluster) for cluster in clusters],
        "source": [source] * len(clusters),
        "format": [SIMULATED] * len(clusters),
        "shape": [cluster.shape.name for cluster in clusters],
    }
    return names | counted | broken


def _counts(one: Placed) -> tuple[int, ...]:
    """Return one cluster's counts, as `_COUNTS` names them."""
    cluster, sizes = one.cluster, one.racks[0, : len(one.cluster.rack_names)].tolist()
    return (
        cluster.broker_count,
        int(np.count_nonzero(cluster.fenced)),
        cluster.broker_count - sum(sizes),
        len(sizes),
        min(sizes, default=NOT_KNOWN),
        max(sizes, default=NOT_KNOWN),
        cluster.topic_count,
        one.partition_count,
    )


def _rack_names(one: Placed) -> tuple[str | None, ...]:
    """Return the names of the racks that `one.racks` counts."""
    names = one.cluster.rack_names
    return (*names, None) if one.racks.shape[1] > len(names) else names


def _racks_of_brokers(placed: Sequence[Placed]) -> Part:
    """Return the name of each broker's rack, null where it has none."""
    names = [name for one in placed for name in one.cluster.rack_names]
    if not names:
        return None
    counts = np.array([len(one.cluster.rack_names) for one in placed])
    codes = np.concatenate([one.cluster.rack_index for one in placed])
    before = np.repeat(np.cumsum(counts) - counts, [one.cluster.broker_count for one in placed])
    places: Any = pa.array(codes + before, mask=codes == NO_RACK)
    return pa.array(names, type=pa.string()).take(places)


def _topics(placed: Sequence[Placed], spread: Int64Array) -> tuple[Rows, Shares]:
    """Return the rows of topics, and what topics hold."""
    clusters = [one.cluster for one in placed]
    counts = np.array([cluster.topic_count for cluster in clusters])
    replicas, holders, *of_replicas, led = spread[:7]
    unknown = [np.full(count, NOT_KNOWN, dtype=np.int64) for count in counts.tolist()]
    size_bytes = np.concatenate(
        [
            none if cluster.size_bytes is None else cluster.size_bytes
            for cluster, none in zip(clusters, unknown, strict=True)
        ]
    )
    sizes = np.where(size_bytes >= 0, size_bytes * replicas, NOT_KNOWN)
    names = pa.concat_arrays([topic_names(count) for count in counts.tolist()])
    settings = (
        np.concatenate([cluster.grown_counts for cluster in clusters]),
        np.concatenate([cluster.factors for cluster in clusters]),
        np.repeat([cluster.shape.min_insync_replicas for cluster in clusters], counts),
    )
    of_replicas[-1], of_leaders = of_replicas[-1] > 0, [*spread[7:10], spread[10] > 0]
    rows = Rows(counts, (names, *settings, replicas, sizes, holders, *of_replicas, *of_leaders))
    return rows, Shares("topic", counts, names, (replicas, led, sizes))
