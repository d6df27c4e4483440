"""List the tables of what to do next with the cluster of a dump: plans, outages, restarts.

What it decides: one row per cluster, at its last moment, and goal, scope or schedule; a simulated fleet has none.

Example: PLANS.column_names[2:5] == ("goal", "excluded_topics", "from_target")

Left out: the plans themselves, which `brokerside plan` writes.
"""

from __future__ import annotations

from typing import Final

from spark_analysis.tables.columns import KEY, Column, Table, state


def _of_plan(name: str, comment: str, unit: str) -> Column:
    return Column(name, "long", comment + "; null when there is no answer or the input does not say", unit, True)


_WHY_NOT: Final = Column(
    "refused", "string", "Why there is no answer: a rule that forbids it, or a size; null for an answer", nullable=True
)

PLANS: Final = Table(
    "plans",
    "one row per cluster of a dump, at its last moment, and goal of a plan: balance, bytes, leaders, racks",
    (
        *KEY,
        Column(
            "goal",
            "string",
            "balance; bytes: even bytes; leaders: balance by reordering alone; racks: mend the rack rule alone",
        ),
        Column("excluded_topics", "strings", "Topics that the plan leaves alone, as it would lose their observers"),
        Column("from_target", "boolean", "Whether it is made from where reassignments in progress will end"),
        _WHY_NOT,
        _of_plan("moved_count", "Replicas that the plan moves", "replicas"),
        _of_plan("moved_count_min", "Replicas that any plan with this goal moves, at least", "replicas"),
        _of_plan("moved_bytes", "Bytes that the plan moves", "bytes"),
        _of_plan("moved_bytes_min", "Bytes that any plan with this goal moves, at least; null but for bytes", "bytes"),
        _of_plan("leader_change_count", "Partitions that the plan gives another leader", "partitions"),
        _of_plan("leader_change_count_min", "Partitions that any plan gives another leader, at least", "partitions"),
        _of_plan("changed_partition_count", "Partitions that change, in replicas or in their order", "partitions"),
        Column("is_least", "boolean", "Whether no plan with this goal moves less", nullable=True),
        *(
            _of_plan(f"{name}_{when}", f"{comment}, {when} the plan", unit)
            for name, comment, unit in (
                ("replica_moves", "Replicas to move until brokers are even, as in measures", "replicas"),
                ("leader_moves", "Leaders to move until brokers are even, as in measures", "partitions"),
                ("byte_moves", "Bytes to move until brokers are even, as in measures", "bytes"),
                ("fewer_racks_count", "Partitions on fewer racks than possible", "partitions"),
            )
            for when in ("before", "after")
        ),
        Column("notes", "strings", "What else is to be known before the plan runs"),
    ),
)

LOST: Final = (
    Column("scope", "string", "What is lost: one broker, or all brokers of one rack"),
    Column("broker_id", "int", "Broker that is lost; null for a rack", nullable=True),
    Column("rack", "string", "Rack that is lost; null for a broker", nullable=True),
)
"""Columns that say which outage a row is about."""
OUTAGES: Final = Table(
    "outages",
    "one row per cluster of a dump, at its last moment, and scope (broker, rack): the loss of the worst one",
    (
        *KEY,
        *LOST,
        *(
            state(f"{name}{when}", f"Partitions {comment}{said}")
            for name, comment in (
                ("leaderless_count", "without a leader"),
                ("under_min_isr_count", "under min-ISR or leaderless"),
                ("no_replica_count", "without a live replica"),
                ("at_risk_count", "of which no live replica has every committed record"),
            )
            for when, said in (("", " after the outage"), ("_now", " now"))
        ),
        Column("at_risk_bytes", "long", "Bytes of one copy of what is at risk after it", "bytes", nullable=True),
        Column("lost_leader_count", "long", "Partitions that were led there", "partitions"),
        Column("failover_count", "long", "Most leaders that one broker takes over", "partitions"),
        Column("failover_share", "double", "Failover concentration: failover_count / lost leaders", "0..1", True),
        Column("failover_broker_id", "int", "Broker that takes them over, the first of equals", nullable=True),
        Column("leader_count_max", "long", "Most leaders on one broker after the outage", "partitions"),
        Column("leader_max_over_mean", "double", "That divided by the mean of the live brokers", nullable=True),
        Column("notes", "strings", "What was assumed where the dump does not say"),
    ),
)

RESTARTS: Final = Table(
    "restarts",
    "one row per cluster of a dump, at its last moment: how few batches restart all its live brokers",
    (
        *KEY,
        _WHY_NOT,
        _of_plan("batch_count", "Batches of the schedule that was found", "batches"),
        _of_plan("batch_count_min", "Batches of any schedule, at least", "batches"),
        _of_plan("batch_broker_count_max", "Brokers in its largest batch", "brokers"),
        _of_plan("stuck_partition_count", "Partitions that no schedule keeps at min.insync.replicas", "partitions"),
        Column("notes", "strings", "What was assumed where the dump does not say"),
    ),
)

ADVICE: Final = (PLANS, OUTAGES, RESTARTS)
"""Tables of what to do next; of a simulated fleet they have no rows."""
