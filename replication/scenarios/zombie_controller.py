"""Keep a replaced controller alive, with leaders that still send it AlterPartition.

The zombie answers AlterPartition by its rules and receives nothing else; it changes its own copy only. Leaders ask it
instead of the controller until `until_ms`.

Source: KAFKA-14154.
"""

from __future__ import annotations

from copy import deepcopy

import attrs

from broker.units import TimeMs
from replication.roles.controller import ControllerRole
from replication.roles.messages import CONTROLLER, Address, AlterPartition, Message, NodeId
from replication.roles.outbox import Outbox
from replication.scenarios.operations import ScenarioContext
from replication.simulation.cluster import Cluster


class _Copy:
    """Run the former controller's process."""

    def __init__(self) -> None:
        self.role: ControllerRole | None = None

    def begin(self, out: Outbox) -> None:
        """Wait for the failover."""

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Answer a leader's AlterPartition."""
        assert isinstance(message, AlterPartition), message
        assert self.role is not None
        self.role.handle(message, Address(NodeId(message.request.leader)), now_ms, out)


@attrs.frozen
class ZombieController:
    """Send AlterPartition to a controller with the state of `at_ms` until `until_ms`."""

    at_ms: int
    until_ms: int

    def perform(self, context: ScenarioContext) -> None:
        """Copy the controller and redirect AlterPartition to the copy."""
        cluster = context.cluster
        former = cluster.clients[context.former]
        assert isinstance(former, _Copy)
        former.role = deepcopy(cluster.controller)
        # Nobody waits for its metadata any more.
        former.role.start(cluster.now_ms, Outbox())
        text = f"another controller takes over; leaders still ask the former one until {self.until_ms} ms"
        cluster.trace.line(cluster.now_ms, text)

        def lead_astray(world: Cluster, _node: NodeId, _message: Message, out: Outbox) -> None:
            if world.now_ms < self.until_ms:
                astray = Address(context.former)
                out.sent[:] = [
                    (astray if to.node == CONTROLLER and isinstance(each, AlterPartition) else to, each)
                    for to, each in out.sent
                ]

        cluster.watches.append(lead_astray)


def zombie_controller() -> _Copy:
    """Return the process of the former controller; it knows nothing until the failover."""
    return _Copy()
