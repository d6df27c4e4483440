"""Hold what a broker process is started with: its id, its clean shutdown file, and access to its logs.

A process does I/O through these functions only, so that a simulation or real files can implement them.

Source: ours; Kafka's broker finds these in its configuration, its disk and its LogManager.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from broker.ids import BrokerId, Offset
from replication.roles.hosted import HostedRoleMaker
from replication.roles.metadata import MetadataImage
from replication.roles.replica_log import ReplicaLog
from replication.rules.fencing import StopProof

OpenLog = Callable[[int], ReplicaLog]
"""A function that opens, or creates, the log of a partition on this broker's disk."""


def _no_strays(_image: MetadataImage) -> None:
    pass


def _none_beside(_path: str) -> frozenset[int]:
    return frozenset()


@attrs.frozen
class BrokerStart:
    """Hold the arguments of a broker process: its id, its clean shutdown file, its logs and hosted roles."""

    broker: BrokerId
    incarnation: str
    proof: StopProof
    open_log: OpenLog
    drop_log: Callable[[int], None]
    checkpoint: Callable[[dict[int, Offset]], None]
    hosted_roles: tuple[HostedRoleMaker, ...] = ()
    partitions_beside: Callable[[str], frozenset[int]] = _none_beside
    """A function that returns the replicas in the same log directory as a path."""
    drop_strays: Callable[[MetadataImage], None] = _no_strays
    """A function that removes the logs on disk that belong to no partition of this broker."""
    rack: str = ""
    """The broker's broker.rack, "" for none."""
