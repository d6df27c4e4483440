"""Run a cluster of brokers on a virtual clock under faults and check the invariants at every step."""

from __future__ import annotations

from replication.simulation.faults import Fault, draw_plan
from replication.simulation.options import FaultKind, NetworkOptions, Options, harsh, quiet, swarm
from replication.simulation.placing import placed
from replication.simulation.retention import with_retention
from replication.simulation.run import Extension, Outcome, Simulation, run
from replication.simulation.shrink import shrink
from replication.simulation.views import OutOfSyncView, PartitionView, ReplicaView

__all__ = (
    "Extension",
    "Fault",
    "FaultKind",
    "NetworkOptions",
    "Options",
    "OutOfSyncView",
    "Outcome",
    "PartitionView",
    "ReplicaView",
    "Simulation",
    "draw_plan",
    "harsh",
    "placed",
    "quiet",
    "run",
    "shrink",
    "swarm",
    "with_retention",
)
