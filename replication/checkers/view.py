"""What the checkers look at: a world of nodes and a controller, as far as it is asked.

What it decides: nothing. Checkers read logs, claims of leaders and the metadata log; they call no rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from broker.ids import BrokerId
from broker.units import TimeMs
from replication.roles.broker_role import BrokerRole
from replication.roles.controller import ControllerRole
from replication.roles.leader import LeaderRole
from replication.roles.replica_log import ReplicaLog


class NodeView(Protocol):
    """A machine: `role` is None while its process is down."""

    broker: BrokerId
    role: BrokerRole | None

    @property
    def clock_ahead_ms(self) -> int:
        """By how much its clock is wrong."""
        ...

    @property
    def life(self) -> int:
        """How often the process was started."""
        ...

    @property
    def lossy_life(self) -> int:
        """The last life whose end took records along, -1 for none."""
        ...

    @property
    def logs(self) -> Mapping[int, ReplicaLog]:
        """The logs that the present life has opened."""
        ...


class CheckedCluster(Protocol):
    """A cluster."""

    controller: ControllerRole

    @property
    def now_ms(self) -> TimeMs:
        """The time."""
        ...

    @property
    def nodes(self) -> Mapping[BrokerId, NodeView]:
        """The machines by broker."""
        ...


def leader_role(node: NodeView, partition: int) -> LeaderRole | None:
    """Return the role of a broker that believes that it leads, else None."""
    part = None if node.role is None else node.role.roles.get(partition)
    return part if isinstance(part, LeaderRole) else None


def is_known(cluster: CheckedCluster, node: NodeView) -> bool:
    """Whether a broker runs, and the controller knows it in its present life."""
    status = cluster.controller.image.brokers.get(node.broker)
    return node.role is not None and status is not None and node.role.epoch == status.epoch
