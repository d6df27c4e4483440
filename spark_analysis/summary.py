"""What a run found, in the few figures that a terminal shows and `--json` prints.

Everything here is read back from the tables, so that the terminal and the report cannot disagree.

Example: summarise(Path("out"), title="demo").cluster_count == 200

Left out: words and layout (cli.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow.compute as pc

from spark_analysis import schemas
from spark_analysis.tables import read_table

STATES: Final = (
    "leaderless_count",
    "under_min_isr_count",
    "at_min_isr_count",
    "under_replicated_count",
    "not_preferred_leader_count",
    "fewer_racks_count",
)
WORST_MAX: Final = 5


@attrs.frozen
class State:
    """A state's partitions over all clusters, and how many clusters have any; None where no input says."""

    name: str
    partition_count: int | None
    cluster_count: int | None


@attrs.frozen
class PlacerSummary:
    """One placer over all its clusters; moves are those that would make brokers even, None where unknown."""

    placer: str
    cluster_count: int
    replica_count: int | None
    replica_moves: int | None
    leader_count: int | None
    leader_moves: int | None


@attrs.frozen
class RankedCluster:
    """One of the clusters to look at first."""

    rank: int
    cluster: str
    placer: str


@attrs.frozen(kw_only=True)
class RunSummary:
    """One run. A cluster placed by two placers counts once as a cluster and twice as a placement."""

    title: str
    cluster_count: int
    placement_count: int
    broker_count: int
    topic_count: int | None
    partition_count: int | None
    replica_count: int | None
    size_bytes: int | None
    violation_count: int
    without_racks_count: int
    rows_in: int
    rows_analysed: int
    rows_rejected: int
    states: tuple[State, ...]
    placers: tuple[PlacerSummary, ...]
    worst: tuple[RankedCluster, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as plain values, for JSON."""
        return attrs.asdict(self)


def summarise(out: Path, *, title: str) -> RunSummary:
    """Return the summary of the tables under `out`/tables. Sums are over placements."""
    clusters: Any = read_table(out, schemas.CLUSTERS)
    inputs: Any = read_table(out, schemas.INPUTS)
    worst = clusters.sort_by("rank").slice(0, WORST_MAX).select(["rank", "cluster", "placer"]).to_pylist()
    return RunSummary(
        title=title,
        cluster_count=len(set(clusters["cluster_id"].to_pylist())),
        placement_count=clusters.num_rows,
        broker_count=_sum(clusters["broker_count"]) or 0,
        topic_count=_sum(clusters["topic_count"]),
        partition_count=_sum(clusters["partition_count"]),
        replica_count=_sum(clusters["replica_count"]),
        size_bytes=_sum(clusters["size_bytes"]),
        violation_count=_sum(clusters["violation_count"]) or 0,
        without_racks_count=clusters["rack_count"].to_pylist().count(0),
        rows_in=_sum(inputs["rows_in"]) or 0,
        rows_analysed=_sum(inputs["rows_analysed"]) or 0,
        rows_rejected=_sum(inputs["rows_rejected"]) or 0,
        states=tuple(State(name, _sum(clusters[name]), _positive(clusters[name])) for name in STATES),
        placers=_placers(out, clusters["placer"].to_pylist()),
        worst=tuple(RankedCluster(**row) for row in worst),
    )


def _sum(column: Any) -> int | None:
    """Sum of what is known, as a whole number of any size; None when nothing is."""
    known = [value for value in column.to_pylist() if value is not None]
    return sum(known) if known else None


def _positive(column: Any) -> int | None:
    known = [value for value in column.to_pylist() if value is not None]
    return sum(value > 0 for value in known) if known else None


def _placers(out: Path, cluster_placers: list[str]) -> tuple[PlacerSummary, ...]:
    columns = ["placer", "quantity", "total", "moves"]
    rows = read_table(out, schemas.MEASURES, columns=columns, where=pc.field("scope") == "broker").to_pylist()
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for row in rows:
        key = row["placer"], row["quantity"]
        total, moves = sums.get(key, (0, 0))
        sums[key] = total + row["total"], moves + row["moves"]
    return tuple(
        PlacerSummary(
            placer,
            cluster_placers.count(placer),
            *sums.get((placer, "replicas"), (None, None)),
            *sums.get((placer, "leaders"), (None, None)),
        )
        for placer in sorted(set(cluster_placers))
    )
