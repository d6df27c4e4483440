"""Define the rows of the tables that the report shows.

Constraints: None means that the input does not say; no field holds markup or a time of day.

How: each class has exactly the fields of its table in `spark_analysis.tables.schemas` (a test holds them together), so
that the meaning and unit of a field is the comment there.
"""

from __future__ import annotations

import attrs

from placement.balance import constraints
from placement.balance.measures import Distribution


@attrs.frozen
class ClusterFacts:
    """Hold one row of the table of clusters."""

    cluster_id: int
    placer: str
    cluster: str
    source: str
    format: str
    shape: str | None
    broker_count: int
    fenced_broker_count: int
    unracked_broker_count: int
    rack_count: int
    rack_broker_count_min: int | None
    rack_broker_count_max: int | None
    topic_count: int | None
    partition_count: int | None
    replica_count: int | None
    size_bytes: int | None
    leaderless_count: int | None
    under_min_isr_count: int | None
    at_min_isr_count: int | None
    under_replicated_count: int | None
    not_preferred_leader_count: int | None
    fewer_racks_count: int | None
    violation_count: int
    rank: int
    out_of_sync_brokers: tuple[int, ...] | None = None
    out_of_sync_explained_count: int | None = None
    previous_cluster_id: int | None = None


@attrs.frozen(kw_only=True)
class Spread(Distribution):
    """Hold one row of the table of measures: how one quantity is spread over brokers, racks or topics."""

    cluster_id: int
    placer: str
    scope: str
    quantity: str


@attrs.frozen
class BrokerLoad:
    """Hold one row of the table of brokers."""

    cluster_id: int
    placer: str
    broker_id: int
    rack: str | None
    fenced: bool
    replica_count: int | None
    leader_count: int | None
    size_bytes: int | None
    missing_from_isr_count: int | None = None
    cordoned: bool = False
    in_controlled_shutdown: bool = False

    @property
    def states(self) -> tuple[str, ...]:
        """Return what sets the broker apart from others, in words."""
        flags = (
            ("fenced", self.fenced),
            ("in controlled shutdown", self.in_controlled_shutdown),
            ("cordoned", self.cordoned),
        )
        return tuple(name for name, is_so in flags if is_so)


@attrs.frozen
class RackLoad:
    """Hold one row of the table of racks; `rack` is None for the brokers without a rack."""

    cluster_id: int
    placer: str
    rack: str | None
    broker_count: int
    replica_count: int | None
    leader_count: int | None
    size_bytes: int | None
    replica_count_best_min: int | None = None
    replica_count_best_max: int | None = None
    leader_count_best_min: int | None = None
    leader_count_best_max: int | None = None
    size_bytes_best_min: int | None = None
    size_bytes_best_max: int | None = None


@attrs.frozen
class LogDir:
    """Hold one row of the table of log directories."""

    cluster_id: int
    placer: str
    broker_id: int
    log_dir: str
    error: str | None
    replica_count: int
    future_replica_count: int
    size_bytes: int


@attrs.frozen
class TopicSpread:
    """Hold one row of the table of topics."""

    cluster_id: int
    placer: str
    topic: str
    partition_count: int
    replication_factor: int
    min_insync_replicas: int | None
    replica_count: int
    size_bytes: int | None
    broker_count: int
    replica_max: int
    replica_best_max: int
    replica_moves: int
    replica_moves_exact: bool
    leader_max: int | None
    leader_best_max: int | None
    leader_moves: int | None
    leader_moves_exact: bool | None


@attrs.frozen(kw_only=True)
class Violation(constraints.Violation):
    """Hold one row of the table of violations: one subject that breaks a constraint, of one cluster."""

    cluster_id: int
    placer: str


@attrs.frozen
class Reject:
    """Hold one row of the table of rejects."""

    source: str
    line: int | None
    reason: str
    value: str


@attrs.frozen
class InputCount:
    """Hold one row of the table of inputs."""

    source: str
    format: str
    cluster_count: int
    rows_in: int
    rows_analysed: int
    rows_rejected: int
    lines_passed_over: int
    notes: tuple[str, ...]
    fault: str | None = None


@attrs.frozen
class PartitionChange:
    """Hold one row of the table of changes."""

    from_cluster: str
    to_cluster: str
    topic: str
    partition: int
    change: str
    detail: str


@attrs.frozen(kw_only=True)
class LeastPlan:
    """Hold one row of the table of plans; `refused` says why there is none."""

    cluster_id: int
    placer: str
    goal: str
    excluded_topics: tuple[str, ...] = ()
    from_target: bool = False
    refused: str | None = None
    moved_count: int | None = None
    moved_count_min: int | None = None
    moved_bytes: int | None = None
    moved_bytes_min: int | None = None
    leader_change_count: int | None = None
    leader_change_count_min: int | None = None
    changed_partition_count: int | None = None
    is_least: bool | None = None
    replica_moves_before: int | None = None
    replica_moves_after: int | None = None
    leader_moves_before: int | None = None
    leader_moves_after: int | None = None
    byte_moves_before: int | None = None
    byte_moves_after: int | None = None
    fewer_racks_count_before: int | None = None
    fewer_racks_count_after: int | None = None
    notes: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class WorstOutage:
    """Hold one row of the table of outages: the loss of the worst broker, or of the worst rack."""

    cluster_id: int
    placer: str
    scope: str
    broker_id: int | None = None
    rack: str | None = None
    leaderless_count: int | None = None
    leaderless_count_now: int | None = None
    under_min_isr_count: int | None = None
    under_min_isr_count_now: int | None = None
    no_replica_count: int | None = None
    no_replica_count_now: int | None = None
    at_risk_count: int | None = None
    at_risk_count_now: int | None = None
    at_risk_bytes: int | None = None
    lost_leader_count: int
    failover_count: int
    failover_share: float | None = None
    failover_broker_id: int | None = None
    leader_count_max: int
    leader_max_over_mean: float | None = None
    notes: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class RestartBatches:
    """Hold one row of the table of restarts; `refused` says why there is no schedule."""

    cluster_id: int
    placer: str
    refused: str | None = None
    batch_count: int | None = None
    batch_count_min: int | None = None
    batch_broker_count_max: int | None = None
    stuck_partition_count: int | None = None
    notes: tuple[str, ...] = ()
