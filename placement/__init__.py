"""Who holds what: replicas on brokers, exactly as Kafka places them, and how even and how safe that is.

`placement.strategies` is not imported here, as it needs hypothesis.
"""

from __future__ import annotations

from placement.audit import PartitionStates, RackAudit, TopicSpread, partition_states, rack_audit, topic_spread
from placement.balance import Distribution, Measure, distribution, measures
from placement.broker_share import CLASSIC_SHARE, STRIPED_SHARE, ShareBound, broker_share
from placement.changes import Change, changes
from placement.classic import ClassicPlacer, grow_topic, rack_alternated_brokers
from placement.constraints import (
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
from placement.definitions import DEFINITIONS, Definition
from placement.loads import Loads, loads
from placement.manual import (
    ManualPartition,
    parse_replica_assignment,
    validate_added_partitions,
    validate_manual_assignment,
)
from placement.spec import Assignment, PlacementSpec, ReplicaPlacer, concatenate
from placement.striped import StripedPlacer

__all__ = (
    "CLASSIC_SHARE",
    "DEFINITIONS",
    "DISTINCT_BROKERS",
    "FACTOR_MET",
    "HARD",
    "LEADER_UNFENCED",
    "RACK_SPREAD",
    "REGISTERED_BROKERS",
    "STANDARD",
    "STRIPED_SHARE",
    "Assignment",
    "Change",
    "ClassicPlacer",
    "Constraint",
    "Definition",
    "Distribution",
    "Loads",
    "ManualPartition",
    "Measure",
    "PartitionStates",
    "PlacementSpec",
    "RackAudit",
    "ReplicaPlacer",
    "ShareBound",
    "StripedPlacer",
    "TopicSpread",
    "Violation",
    "Violations",
    "broker_share",
    "changes",
    "check",
    "concatenate",
    "distribution",
    "factor_met",
    "grow_topic",
    "loads",
    "measures",
    "parse_replica_assignment",
    "partition_states",
    "rack_alternated_brokers",
    "rack_audit",
    "topic_spread",
    "validate_added_partitions",
    "validate_manual_assignment",
)
