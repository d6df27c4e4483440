"""Model one broker: the types that every other package uses, and the state machines inside a single broker.

    errors          Raise InputError, CorruptDataError or RefusedError, by whose fault it is.
    ids             Name brokers, topics, partitions, epochs and offsets by types of their own.
    releases        Name the releases of Kafka whose behaviour this library reproduces.
    differences     List what differs between releases, by source and by place in the code.
    units           Read and print sizes in bytes and durations in milliseconds.
    clock           Pass time as a parameter: a clock that only its owner moves.
    entropy         Pass chance as a parameter: SplitMix64, and java.util.Random bit for bit.
    draws           Draw exponential waiting times in whole numbers.
    values          Make frozen values that are created by the million.
    row_flags       Find and count flags or ids in each row of a matrix, column by column.
    broker_rows     Map broker ids to their indices in the ascending ids of a cluster.
    kernel_source   Copy a module of an archive to a lasting place, so that numba can cache its machine code.
    block_copy      Copy blocks of bytes in compiled loops by LLVM's memcpy.
    interpreted     Interpret a kernel with Python numbers in the place of numpy's, while its work is small.
    compiled        Run a loop over arrays: interpreted while its work is small, then compiled by numba.
    wording         Escape untrusted text, format counts and lists in words, and find the name nearest to another.
    workers         Run the work on many items in processes, and take the results in order.
    small_files     Read a file, whole or in pieces, up to a limit in bytes.
    cli             Run a command with escaped output, one-line errors and exit statuses.
    cli_options     Define the options that several commands share.
    error_codes     List Kafka's error codes by name and number.
    machines        Write a state machine as a table of (state, input); draw it as text, Mermaid or DOT.
    registration    Decide a broker's registration, fencing and shutdown, as the controller does.
    java/           Reproduce Java's string hash and the iteration order of HashMap and HashSet.
    liveness        Decide from registrations, ISRs and offline replicas which brokers are alive.
    wholeness       Decide whether a dump lists every partition of its cluster, and what is missing.
    wire/           Read and write Kafka's messages by tables of fields: records of internal topics, metadata.
    partition_faults  Check whether one partition of a dump or metadata log is possible.
    cluster         Hold brokers, topics and replicas of one cluster at one moment.
    clusters        Hold many clusters as one, for counts of all of them at once.
    config/         List Kafka's broker, topic and group settings with defaults, units and source.
    min_isr         Decide the min.insync.replicas of a topic, and where it comes from.
    known           Sum up what is known of one cluster: whole, alive, min.insync.replicas, sizes.
    requests/       Simulate the request path: acceptor, processors, queues, handlers, purgatory.
    zookeeper       Keep ZooKeeper's tree: versions, sessions, ephemeral nodes, watches.
    group/          Coordinate classic, consumer (KIP-848) and ZooKeeper-era groups.

Constraints: no module reads a clock or draws a number by itself; time, chance and bytes are parameters. Only
small_files, kernel_source and cli open files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from broker.clock import Clock, ManualClock
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
from broker.releases import NEWEST, Release
from broker.units import DurationMs, SizeBytes, TimeMs, format_size, parse_size

if TYPE_CHECKING:
    from broker.cluster import BrokerTotals, BrokerView, ClusterView, PartitionTable, TopicView
else:  # These need numpy.

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module("broker.cluster"), name)


__all__ = (
    "NEWEST",
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
    "Release",
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
