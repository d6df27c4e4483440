"""Answer a CreateTopics request as the controller does: check it, place it, or refuse it in Kafka's words.

What is wrong is found in the controller's order: the number of partitions of the request, the name, the replication
factor, the partition count, then the placer's refusal, which the controller prefixes.

    >>> check_create_topic("orders", PlacementSpec(0, 0, 3))
    Traceback (most recent call last):
        ...
    broker.errors.InvalidPartitionsError: Number of partitions was set to an invalid non-positive value.

Source: Kafka 4.3.1, ReplicationControlManager.createTopics, createTopic and createPartitions, and Topic.validate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.cluster import BrokerView, Int32Array
from broker.entropy import RandomSource
from broker.errors import (
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    PolicyViolationError,
    UsageError,
)
from placement.spec import PlacementSpec, ReplicaPlacer, rows_placed

CLUSTER_DEFAULT: Final = -1
PARTITIONS_PER_REQUEST_MAX: Final = 10_000  # ReplicationControlManager.MAX_PARTITIONS_PER_BATCH.
REPLICATION_FACTOR_MAX: Final = 2**15 - 1  # A CreateTopics request has it in 16 bits.
PARTITION_COUNT_MAX: Final = 2**31 - 1  # And this in 32.
NAME_LENGTH_MAX: Final = 249


def create_topic(
    name: str, placer: ReplicaPlacer, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource
) -> Int32Array:
    """Return the replicas of a new topic, a row per partition; raise what Kafka's controller answers instead.

    Raises the errors of `check_create_topic` and of the placer, a refused replication factor with Kafka's prefix.
    """
    check_create_topic(name, spec)
    try:
        return rows_placed(placer, spec, brokers, entropy)
    except InvalidReplicationFactorError as refusal:
        raise InvalidReplicationFactorError(
            f"Unable to replicate the partition {spec.replication_factor} time(s): {refusal}"
        ) from None


def check_create_topic(name: str, spec: PlacementSpec) -> None:
    """Raise Kafka's refusal of a topic's name or numbers; UsageError for numbers that a request cannot hold."""
    if spec.partition_count > PARTITION_COUNT_MAX:
        raise UsageError(f"partition count is {spec.partition_count}; the largest allowed is {PARTITION_COUNT_MAX}")
    if spec.replication_factor > REPLICATION_FACTOR_MAX:
        raise UsageError(
            f"replication factor is {spec.replication_factor}; the largest allowed is {REPLICATION_FACTOR_MAX}"
        )
    if spec.partition_count > PARTITIONS_PER_REQUEST_MAX:
        raise PolicyViolationError("Excessively large number of partitions per request.")
    check_topic_name(name)
    if spec.replication_factor < CLUSTER_DEFAULT or spec.replication_factor == 0:
        raise InvalidReplicationFactorError("Replication factor must be larger than 0, or -1 to use the default value.")
    if spec.partition_count < CLUSTER_DEFAULT or spec.partition_count == 0:
        raise InvalidPartitionsError("Number of partitions was set to an invalid non-positive value.")
    if CLUSTER_DEFAULT in (spec.replication_factor, spec.partition_count):
        raise UsageError("-1 stands for the cluster's default, which is not known here; name the number")


def check_topic_name(name: str) -> None:
    """Raise InvalidTopicError for a name of a length or an alphabet that no topic has, and for "." and ".."."""
    if name in (".", ".."):
        raise InvalidTopicError(f"Topic name is invalid: '{name}' is not allowed")
    if len(name) > NAME_LENGTH_MAX:
        raise InvalidTopicError(
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
        )


def check_collision(name: str, existing: Sequence[str]) -> None:
    """Raise InvalidTopicError for a name that differs from an existing one in periods and underscores alone."""
    if "." not in name and "_" not in name:
        return
    for other in existing:
        if ("." in other or "_" in other) and other.replace(".", "_") == name.replace(".", "_"):
            raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {other}")


def check_growth(topic: str, existing_count: int, partition_count: int) -> None:
    """Raise InvalidPartitionsError unless a topic of `existing_count` partitions grows, as CreatePartitions does."""
    if partition_count == existing_count:
        raise InvalidPartitionsError(f"Topic already has {existing_count} partition(s).")
    if partition_count < existing_count:
        raise InvalidPartitionsError(
            f"The topic {topic} currently has {existing_count} partition(s); "
            f"{partition_count} would not be an increase."
        )
