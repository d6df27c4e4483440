"""Lives that several tests look at, each played once."""

from __future__ import annotations

from functools import cache

from replication.groups.alone.checker import Checker, GroupFinding
from replication.groups.alone.group_run import GroupRun, run_group
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.alone.seeded_scenario import Shape, seeded_scenario
from replication.groups.alone.simulation import GroupSimulation, Watcher
from replication.groups.client.protocols import GroupProtocol

EAGER, COOPERATIVE, CONSUMER = GroupProtocol.EAGER, GroupProtocol.COOPERATIVE, GroupProtocol.CONSUMER
SMALL = Shape(members=4, partitions=8, minutes=10)


@cache
def named(name: str, protocol: GroupProtocol) -> GroupRun:
    """Return the run of a named scenario."""
    return run_group(SCENARIOS[name], protocol, 1)


@cache
def seeded(seed: int, protocol: GroupProtocol) -> GroupRun:
    """Return the run of a seeded scenario."""
    return run_group(seeded_scenario(seed, SMALL), protocol, seed)


def watched(name: str, protocol: GroupProtocol, *watchers: Watcher) -> GroupSimulation:
    """Play a named scenario with somebody who looks."""
    simulation = GroupSimulation(SCENARIOS[name], protocol, 1)
    simulation.watchers += watchers
    simulation.run()
    return simulation


def findings(name: str, protocol: GroupProtocol) -> list[GroupFinding]:
    """Return what the checker finds, of a simulation that a test may have broken on purpose."""
    checker = Checker()
    watched(name, protocol, checker)
    return checker.findings


def codes(name: str, protocol: GroupProtocol) -> set[str]:
    """Return the codes of the invariants that are broken."""
    return {finding.broken.code for finding in findings(name, protocol)}
