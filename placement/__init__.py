"""Place replicas on brokers and partitions on consumers as Kafka does, and measure how even and how safe that is.

    spec            Define a placement's question, its answer and the placer between them.
    placers/        Place replicas as Kafka does: striped, classic or by hand.
    producer/       Choose a record's partition as Kafka's producer does, and model its batches.
    balance/        Measure loads and spread, check constraints, audit racks, list changes.
    outages/        Show what losing brokers or racks does, and in which batches brokers may restart.
    risks/          Compute how likely outages and losses are: draws, simulated years, closed forms.
    planning/       Plan moves of replicas and leaders, and show what a plan does before it is run.
    formats/        Read and write the text and JSON of Kafka's tools, one module a format.
    strategies      Generate clusters for Hypothesis tests and check any placer in one call.
    consumer/       Assign partitions to consumers as Kafka's assignors do.
    traffic/        Count what crosses zones, beside the least possible, and what changes save.
    examples/       Show placers as users write them: by load, and on few sets of brokers.
    cli             Print a placement: `brokerside assign`.

Constraints: `strategies` needs hypothesis, so this root does not import it.
"""

from __future__ import annotations

from placement.balance.audit import PartitionStates, RackAudit, partition_states, rack_audit
from placement.balance.changes import ClusterChange, changes
from placement.balance.comparison import Comparison, compare
from placement.balance.constraints import (
    DISTINCT_BROKERS,
    FACTOR_MET,
    HARD,
    LEADER_UNFENCED,
    RACK_SPREAD,
    REGISTERED_BROKERS,
    STANDARD,
    Constraint,
    Violation,
    Violations,
    check,
    factor_met,
)
from placement.balance.definitions import DEFINITIONS, Definition
from placement.balance.loads import Loads, loads
from placement.balance.measures import Distribution, Measure, distribution, measures
from placement.balance.topic_spread import TopicSpread, topic_spread
from placement.outages.look_ahead import LookAhead, look_ahead
from placement.outages.lost import Outage, outage
from placement.outages.restarts import RestartSchedule, restart_schedule
from placement.placers.classic import ClassicPlacer, grow_topic, rack_alternated_brokers
from placement.placers.manual import (
    ManualPartition,
    parse_replica_assignment,
    validate_added_partitions,
    validate_manual_assignment,
)
from placement.placers.striped import StripedPlacer
from placement.planning.completion import Completion, completed_view, completion
from placement.planning.findings import Finding, findings
from placement.planning.goal import Goal, PlanRefusedError
from placement.planning.impact import Impact, impact
from placement.planning.plan import Plan, make_plan
from placement.planning.reassignment import LogDirTarget, Reassignment
from placement.planning.schedule import Limits, Schedule, ScheduleError, schedule
from placement.spec import Assignment, PlacementSpec, ReplicaPlacer, concatenate

__all__ = (
    "DEFINITIONS",
    "DISTINCT_BROKERS",
    "FACTOR_MET",
    "HARD",
    "LEADER_UNFENCED",
    "RACK_SPREAD",
    "REGISTERED_BROKERS",
    "STANDARD",
    "Assignment",
    "ClassicPlacer",
    "ClusterChange",
    "Comparison",
    "Completion",
    "Constraint",
    "Definition",
    "Distribution",
    "Finding",
    "Goal",
    "Impact",
    "Limits",
    "Loads",
    "LogDirTarget",
    "LookAhead",
    "ManualPartition",
    "Measure",
    "Outage",
    "PartitionStates",
    "PlacementSpec",
    "Plan",
    "PlanRefusedError",
    "RackAudit",
    "Reassignment",
    "ReplicaPlacer",
    "RestartSchedule",
    "Schedule",
    "ScheduleError",
    "StripedPlacer",
    "TopicSpread",
    "Violation",
    "Violations",
    "changes",
    "check",
    "compare",
    "completed_view",
    "completion",
    "concatenate",
    "distribution",
    "factor_met",
    "findings",
    "grow_topic",
    "impact",
    "loads",
    "look_ahead",
    "make_plan",
    "measures",
    "outage",
    "parse_replica_assignment",
    "partition_states",
    "rack_alternated_brokers",
    "rack_audit",
    "restart_schedule",
    "schedule",
    "topic_spread",
    "validate_added_partitions",
    "validate_manual_assignment",
)
