"""Check hand-written replica assignments as Kafka's controller does before it accepts them.

The first broken rule is the one reported, in the controller's words and order: a new topic's request names replica
lists, or a partition count and a factor, not both; partition by partition, each once, its list not empty, its brokers,
looked at in ascending order, registered, since 4.4 not cordoned (KAFKA-20832), and each there once; as many as the
first partition has; one of them active; the partitions of a new topic are 0, 1, 2, … without a gap.

Source: org.apache.kafka.controller.ReplicationControlManager, createTopic, createPartitions and
validateManualPartitionAssignment, 4.0 to 4.4.0; kafka-topics --replica-assignment for the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import BrokerView, Int32Array
from broker.errors import (
    InputError,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    UsageError,
)
from broker.releases import NEWEST, Release
from placement.placers.create_topic import check_growth
from placement.placers.usable import CORDONS_REFUSED_SINCE
from placement.spec import PARTITION_COUNT_MAX

NOT_SET: Final = -1
"""What a request says of a number that it leaves to others."""

_BROKER: Final = re.compile(r"-?[0-9]{1,10}", re.ASCII)


@attrs.frozen
class ManualPartition:
    """Hold the replica list given for one partition, preferred leader first, unchecked."""

    partition: int
    replicas: tuple[int, ...]


def parse_replica_assignment(text: str) -> tuple[ManualPartition, ...]:
    """Return the partitions of kafka-topics --replica-assignment: commas between partitions, colons between brokers.

    Raises InputError for anything that is not a whole number between them.
    """
    lists = text.split(",")
    if len(lists) > PARTITION_COUNT_MAX:
        raise InputError(f"{len(lists)} partitions are listed; the largest number allowed is {PARTITION_COUNT_MAX}")
    partitions = []
    for partition, brokers in enumerate(lists):
        names = [name.strip() for name in brokers.split(":")]
        wrong = next((name for name in names if not _BROKER.fullmatch(name)), None)
        if wrong is not None:
            raise InputError(f"replica assignment of partition {partition}: not a broker id", value=wrong)
        partitions.append(ManualPartition(partition, tuple(int(name) for name in names)))
    return tuple(partitions)


def validate_manual_assignment(
    partitions: Sequence[ManualPartition],
    brokers: Sequence[BrokerView],
    *,
    partition_count: int = NOT_SET,
    replication_factor: int = NOT_SET,
    release: Release = NEWEST,
) -> Int32Array:
    """Return a new topic's rows, int32[P, factor], by partition; raise the errors of Kafka's controller.

    `partition_count` and `replication_factor` are what the same request says beside the lists. Raises
    InvalidRequestError and InvalidReplicaAssignmentError, and UsageError when no partition is given.
    """
    if not partitions:
        raise UsageError("a manual assignment needs at least one partition")
    if replication_factor != NOT_SET:
        raise InvalidRequestError(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if partition_count != NOT_SET:
        raise InvalidRequestError("A manual partition assignment was specified, but numPartitions was not set to -1.")
    known = {int(broker.id): broker for broker in brokers}
    rows: dict[int, tuple[int, ...]] = {}
    factor = None
    for given in partitions:
        if given.partition in rows:
            raise InvalidReplicaAssignmentError(
                f"Found multiple manual partition assignments for partition {given.partition}"
            )
        _check_replicas(given, known, factor, release)
        factor = len(given.replicas)
        rows[given.partition] = given.replicas
    if any(partition not in rows for partition in range(len(rows))):
        raise InvalidReplicaAssignmentError("partitions should be a consecutive 0-based integer sequence")
    return np.array([rows[partition] for partition in range(len(rows))], dtype=np.int32)


def validate_added_partitions(
    topic: str,
    replicas: Int32Array,
    partition_count: int,
    added: Sequence[Sequence[int]],
    brokers: Sequence[BrokerView],
    *,
    release: Release = NEWEST,
) -> Int32Array:
    """Return the rows by which `topic` grows to `partition_count` partitions, int32[added, factor].

    `replicas` int32[existing, W] are its rows now, -1 pads; `added` are the new partitions' lists, in order.
    Raises InvalidPartitionsError and InvalidReplicaAssignmentError, and UsageError for a topic of no partitions.
    """
    existing_count = len(replicas)
    if existing_count == 0:
        raise UsageError(f"topic {topic} has no partition to take the replication factor from")
    check_growth(topic, existing_count, partition_count)
    if len(added) != partition_count - existing_count:
        raise InvalidReplicaAssignmentError(
            f"Attempted to add {partition_count - existing_count} additional partition(s), "
            f"but only {len(added)} assignment(s) were specified."
        )
    known = {int(broker.id): broker for broker in brokers}
    factor = int(np.count_nonzero(replicas[0] >= 0))
    for partition, row in enumerate(added, start=existing_count):
        _check_replicas(ManualPartition(partition, tuple(row)), known, factor, release)
    return np.array([tuple(row) for row in added], dtype=np.int32)


def _check_replicas(
    given: ManualPartition, known: Mapping[int, BrokerView], factor: int | None, release: Release
) -> None:
    if not given.replicas:
        raise InvalidReplicaAssignmentError("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker in sorted(given.replicas):
        if broker not in known:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            )
        if known[broker].cordoned and release >= CORDONS_REFUSED_SINCE:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes broker {broker}, but all its log directories are cordoned."
            )
        if broker == previous:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes the broker {broker} more than once."
            )
        previous = broker
    if factor is not None and len(given.replicas) != factor:
        raise InvalidReplicaAssignmentError(
            f"The manual partition assignment includes a partition with {len(given.replicas)} replica(s), "
            f"but this is not consistent with previous partitions, which have {factor} replica(s)."
        )
    if not any(known[broker].is_active for broker in given.replicas):
        raise InvalidReplicaAssignmentError(
            f"All brokers specified in the manual partition assignment for partition {given.partition} "
            "are fenced or in controlled shutdown."
        )
