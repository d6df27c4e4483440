"""A controller that was replaced and does not know it, and leaders that still ask it.

It decides what such a controller knows: what the controller knew at a time, and nothing after.

Constraints: it answers requests to change an ISR, as its rules say, and is asked nothing else; what it changes, it
changes in its own copy. Leaders ask it instead of the controller until they find the right one.

How: from `at_ms` to `until_ms` the requests AlterPartition go to a further process, which plays the role of a
controller on a copy of what was known at `at_ms`.

Worked example: `ZombieController(5_000, 12_000)`.

Left out: how a controller learns that it was replaced (`replication.explore`).

Source: KAFKA-14154.
"""

from __future__ import annotations

from copy import deepcopy

import attrs

from broker.units import TimeMs
from replication.roles.controller import ControllerRole
from replication.roles.messages import CONTROLLER, Address, AlterPartition, Message, NodeId
from replication.roles.outbox import Outbox
from replication.scenarios.acts import Stage
from replication.simulation.cluster import Cluster


class _Copy:
    """The process of the former controller."""

    def __init__(self) -> None:
        self.role: ControllerRole | None = None

    def begin(self, out: Outbox) -> None:
        """Wait for the time at which it is replaced."""

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Answer a leader."""
        assert isinstance(message, AlterPartition), message
        assert self.role is not None
        self.role.handle(message, Address(NodeId(message.request.leader)), now_ms, out)


@attrs.frozen
class ZombieController:
    """From `at_ms` to `until_ms` leaders ask a controller that knows nothing later than `at_ms`."""

    at_ms: int
    until_ms: int

    def strike(self, stage: Stage) -> None:
        """Copy the controller, and let leaders ask the copy."""
        cluster = stage.cluster
        former = cluster.clients[stage.former]
        assert isinstance(former, _Copy)
        former.role = deepcopy(cluster.controller)
        # Nobody waits for news of it any more.
        former.role.start(cluster.now_ms, Outbox())
        text = f"another controller takes over; leaders still ask the former one until {self.until_ms} ms"
        cluster.trace.line(cluster.now_ms, text)

        def lead_astray(world: Cluster, _node: NodeId, _message: Message, out: Outbox) -> None:
            if world.now_ms < self.until_ms:
                astray = Address(stage.former)
                out.sent[:] = [
                    (astray if to.node == CONTROLLER and isinstance(each, AlterPartition) else to, each)
                    for to, each in out.sent
                ]

        cluster.watches.append(lead_astray)


def zombie_controller() -> _Copy:
    """Return the process of a former controller, which is none as yet."""
    return _Copy()
