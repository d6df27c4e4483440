"""Runs of one group that several tests look at, each made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from replication.groups.alone.group_run import GroupRun, GroupSimulation, run_group
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.alone.seeded_scenario import Shape, seeded_scenario
from replication.groups.client.assigning import GroupProtocol
from replication.roles.messages import Message

EAGER, COOPERATIVE, CONSUMER = GroupProtocol.EAGER, GroupProtocol.COOPERATIVE, GroupProtocol.CONSUMER
SMALL = Shape(members=3, partitions=6, minutes=8)


@cache
def named(name: str, protocol: GroupProtocol) -> GroupRun:
    """Return the run of a named scenario."""
    return run_group(SCENARIOS[name], protocol, 1)


@cache
def seeded(seed: int, protocol: GroupProtocol) -> GroupRun:
    """Return the run of a seeded scenario."""
    return run_group(seeded_scenario(seed, SMALL), protocol, seed)


def watched(
    name: str,
    protocol: GroupProtocol,
    look: Callable[[GroupSimulation, Message], None] = lambda simulation, message: None,
) -> GroupSimulation:
    """Run a named scenario and call `look` after each event."""
    simulation = GroupSimulation(SCENARIOS[name], protocol, 1)
    simulation.cluster.watches.append(lambda cluster, node, message, out: look(simulation, message))
    simulation.run()
    return simulation


def codes(name: str, protocol: GroupProtocol) -> set[str]:
    """Return the codes of the invariants that are broken in a run that a test may have broken on purpose."""
    return {finding.code for finding in watched(name, protocol).found()}
