"""Lives that several tests look at, each played once."""

from __future__ import annotations

from functools import cache

from replication.groups.alone.checking import Checker, Finding
from replication.groups.alone.life import Life, live
from replication.groups.alone.plan import Shape, seeded_scenario
from replication.groups.alone.scenario import Mode
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.alone.world import Watcher, World

EAGER, COOPERATIVE, CONSUMER = Mode.EAGER, Mode.COOPERATIVE, Mode.CONSUMER
SMALL = Shape(members=4, partitions=8, minutes=10)


@cache
def told(name: str, mode: Mode) -> Life:
    """Return a named scenario's life."""
    return live(SCENARIOS[name], mode, 1)


@cache
def seeded(seed: int, mode: Mode) -> Life:
    """Return the run of a seeded scenario."""
    return live(seeded_scenario(seed, SMALL), mode, seed)


def watched(name: str, mode: Mode, *watchers: Watcher) -> World:
    """Play a named scenario with somebody who looks."""
    world = World(SCENARIOS[name], mode, 1)
    world.watchers += watchers
    world.play()
    return world


def findings(name: str, mode: Mode) -> list[Finding]:
    """Return what the checker finds, of a world that a test may have broken on purpose."""
    checker = Checker()
    watched(name, mode, checker)
    return checker.findings


def codes(name: str, mode: Mode) -> set[str]:
    """Return the codes of the invariants that are broken."""
    return {finding.broken.code for finding in findings(name, mode)}
