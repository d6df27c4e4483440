"""Refuse what the controller refuses of a CreateTopics request before it asks a placer.

What it decides: whether the partition count and the replication factor of a new topic are numbers to place.

Constraints: the replication factor is checked first, as the controller does.

Example:

    >>> check_create_topic(PlacementSpec(0, 0, 3))
    Traceback (most recent call last):
        ...
    broker.errors.InvalidPartitionsError: Number of partitions was set to an invalid non-positive value.

Left out: -1, for which a controller takes num.partitions and default.replication.factor, which are not known here;
quotas and the create.topic.policy.

Source: Kafka 4.3.1, ReplicationControlManager.createTopic.
"""

from __future__ import annotations

from typing import Final

from broker.errors import InvalidPartitionsError, InvalidReplicationFactorError, UsageError
from placement.spec import PlacementSpec

CLUSTER_DEFAULT: Final = -1


def check_create_topic(spec: PlacementSpec) -> None:
    """Raise InvalidReplicationFactorError or InvalidPartitionsError for 0 and less; UsageError for -1."""
    if spec.replication_factor < CLUSTER_DEFAULT or spec.replication_factor == 0:
        raise InvalidReplicationFactorError("Replication factor must be larger than 0, or -1 to use the default value.")
    if spec.partition_count < CLUSTER_DEFAULT or spec.partition_count == 0:
        raise InvalidPartitionsError("Number of partitions was set to an invalid non-positive value.")
    if CLUSTER_DEFAULT in (spec.replication_factor, spec.partition_count):
        raise UsageError("-1 stands for the cluster's default, which is not known here; name the number")
