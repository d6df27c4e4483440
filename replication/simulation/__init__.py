"""A cluster of brokers on a virtual clock, under faults, checked at every step."""

from __future__ import annotations

from replication.simulation.faults import Fault, draw_plan
from replication.simulation.options import FaultKind, NetworkOptions, Options, harsh, quiet, swarm
from replication.simulation.run import Outcome, run
from replication.simulation.shrink import shrink

__all__ = (
    "Fault",
    "FaultKind",
    "NetworkOptions",
    "Options",
    "Outcome",
    "draw_plan",
    "harsh",
    "quiet",
    "run",
    "shrink",
    "swarm",
)
