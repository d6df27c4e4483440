"""Define what the checkers see of a cluster: its nodes and its controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from broker.ids import BrokerEpoch, BrokerId
from broker.units import TimeMs
from replication.roles.broker_role import BrokerRole
from replication.roles.controller import ControllerRole
from replication.roles.leader import LeaderRole
from replication.roles.messages import Incarnation
from replication.roles.replica_log import ReplicaLog


class NodeView(Protocol):
    """Define the checkers' view of one machine; `role` is None while its process is down."""

    broker: BrokerId
    role: BrokerRole | None

    @property
    def clock_ahead_ms(self) -> int:
        """Return the milliseconds by which the machine's clock is ahead."""
        ...

    @property
    def incarnation(self) -> int:
        """Return the number of the process's incarnation."""
        ...

    @property
    def lossy_incarnation(self) -> int:
        """Return the last incarnation that ended with a loss of records, -1 for none."""
        ...

    @property
    def clean_stops(self) -> Mapping[Incarnation, BrokerEpoch]:
        """Return the broker epoch of each incarnation that ended with a clean stop, by incarnation."""
        ...

    @property
    def logs(self) -> Mapping[int, ReplicaLog]:
        """Return the logs that the present incarnation has opened, by partition."""
        ...


class CheckedCluster(Protocol):
    """Define the checkers' view of a cluster."""

    controller: ControllerRole
    controller_started_ms: int
    """When the present controller took over, 0 for the first."""

    @property
    def is_asked_apart(self) -> bool:
        """Return whether some brokers ask a former controller, which answers in the place of the present one."""
        ...

    @property
    def now_ms(self) -> TimeMs:
        """Return the time, in milliseconds."""
        ...

    @property
    def nodes(self) -> Mapping[BrokerId, NodeView]:
        """Return the machines by broker."""
        ...


def leader_role(node: NodeView, partition: int) -> LeaderRole | None:
    """Return the leader role of a broker that believes it leads a partition, else None."""
    part = None if node.role is None else node.role.roles.get(partition)
    return part if isinstance(part, LeaderRole) else None


def is_known(cluster: CheckedCluster, node: NodeView) -> bool:
    """Return whether a broker runs, and the controller knows its present incarnation."""
    status = cluster.controller.image.brokers.get(node.broker)
    return node.role is not None and status is not None and node.role.epoch == status.epoch
