"""Run one consumer group on a cluster of one broker, and count what its rebalances cost.

`run_group(scenario, protocol, seed)` runs a `SingleGroupScenario`, named (`SCENARIOS`) or drawn (`seeded_scenario`),
and returns a `GroupRun`: its counts, its history, and the invariants that were broken.
"""

from __future__ import annotations

from replication.groups.alone.group_run import GroupRun, run_group
from replication.groups.alone.scenario import MemberSpec, SingleGroupScenario
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.alone.seeded_scenario import Shape, seeded_scenario

__all__ = ("SCENARIOS", "GroupRun", "MemberSpec", "Shape", "SingleGroupScenario", "run_group", "seeded_scenario")
