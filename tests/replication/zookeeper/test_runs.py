"""Whole clusters with ZooKeeper under faults: the rules hold, and an old bug is found."""

from __future__ import annotations

import attrs
import pytest

from broker.units import DurationMs
from replication.rules import rules_of
from replication.simulation import FaultKind, Options, run, swarm

LOSING = (FaultKind.POWER_LOSS, FaultKind.WIPE, FaultKind.RACK_OUTAGE)
"""Without ELR the last replica in sync may lose records, whatever the rules."""


def _with_zookeeper(seed: int, release: str) -> Options:
    options = swarm(seed, DurationMs(60_000), rules_of(release))
    faults = tuple((kind, mean_ms) for kind, mean_ms in options.fault_ms if kind not in LOSING)
    return attrs.evolve(options, settings=attrs.evolve(options.settings, has_zookeeper=True), fault_ms=faults)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 9, 17])
def test_a_cluster_with_zookeeper_keeps_every_invariant_under_faults(seed: int) -> None:
    assert run(_with_zookeeper(seed, "3.5")).findings == ()


def test_the_end_of_another_log_is_counted_under_the_rules_of_2_8() -> None:
    # KAFKA-13141: a follower that was mute fetches beyond the leader's end, is counted, and joins.
    options = attrs.evolve(swarm(18, DurationMs(60_000), rules_of("2.8")), is_strict=False)
    options = attrs.evolve(options, settings=attrs.evolve(options.settings, has_zookeeper=True))
    assert {finding.code for finding in run(options).findings} >= {"I5", "I6"}
