"""One broker: the words that every other package uses, and the machines inside a single broker.

Nothing here reads a clock, draws a number or opens a file by itself: time, chance and bytes come in.
"""

from __future__ import annotations

from broker.clock import Clock, ManualClock
from broker.cluster import BrokerTotals, BrokerView, ClusterView, PartitionTable, TopicView
from broker.config import Scope, Setting, Settings
from broker.entropy import JavaRandom, RandomSource, SplitMix64, derive
from broker.errors import (
    AdminOperationError,
    BrokersideError,
    CorruptDataError,
    InputError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    RefusedError,
    UsageError,
)
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset, PartitionId, TopicPartition
from broker.java.string_hash import java_map_order, java_set_copy_order, java_string_hash
from broker.registration import BrokerInput, BrokerState, Registration, broker_step, heartbeat_input, register
from broker.units import DurationMs, SizeBytes, TimeMs, format_size, parse_size

__all__ = (
    "AdminOperationError",
    "BrokerEpoch",
    "BrokerId",
    "BrokerInput",
    "BrokerState",
    "BrokerTotals",
    "BrokerView",
    "BrokersideError",
    "Clock",
    "ClusterView",
    "CorruptDataError",
    "DurationMs",
    "InputError",
    "InvalidPartitionsError",
    "InvalidReplicaAssignmentError",
    "InvalidReplicationFactorError",
    "JavaRandom",
    "LeaderEpoch",
    "ManualClock",
    "Offset",
    "PartitionId",
    "PartitionTable",
    "RandomSource",
    "RefusedError",
    "Registration",
    "Scope",
    "Setting",
    "Settings",
    "SizeBytes",
    "SplitMix64",
    "TimeMs",
    "TopicPartition",
    "TopicView",
    "UsageError",
    "broker_step",
    "derive",
    "format_size",
    "heartbeat_input",
    "java_map_order",
    "java_set_copy_order",
    "java_string_hash",
    "parse_size",
    "register",
)
