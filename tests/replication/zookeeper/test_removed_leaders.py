"""Consumers that read from a leader which a move removed while it had no session: no controller tells it (L12)."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from broker.ids import BrokerId, Offset
from broker.units import DurationMs, TimeMs
from replication.roles.leader import LeaderRole
from replication.rules.switches import rules_of
from replication.simulation import Fault, FaultKind, Simulation, quiet
from replication.simulation.clients import METADATA_MS_MAX, Consumer
from replication.simulation.liveness import settled

ZERO, ONE = BrokerId(0), BrokerId(1)


def removed_leader(duration_ms: int, *, has_zookeeper: bool = True) -> tuple[Simulation, Consumer]:
    """Broker 0 leads, loses its session at 29 s, and has another one at 62 s; at 45 s broker 3 takes its place."""
    options = quiet(6, DurationMs(duration_ms), rules_of("3.5"))
    role_settings = attrs.evolve(options.role_settings, has_zookeeper=has_zookeeper)
    options = attrs.evolve(options, role_settings=role_settings, brokers=4, partitions=1)
    plan = (
        Fault(TimeMs(20_000), FaultKind.CUT_CONTROLLER, 0, DurationMs(40_000)),
        Fault(TimeMs(45_000), FaultKind.REASSIGN, partition=0),
    )
    simulation = Simulation(options, plan)
    (consumer,) = (client for client in simulation.cluster.clients.values() if isinstance(client, Consumer))
    return simulation, consumer


def test_a_removed_leader_that_was_not_told_holds_a_consumer_up_until_its_metadata_is_old() -> None:
    simulation, consumer = removed_leader(400_000)
    simulation.run_until(300_000)
    state = simulation.cluster.controller.image.partitions[0]
    role = simulation.cluster.nodes[ZERO].role
    assert role is not None
    part = role.roles[0]
    assert isinstance(part, LeaderRole)
    assert (state.replicas, state.leader, part.state.leader_epoch) == ((1, 3, 2), ONE, 0)
    assert (consumer.reads_from, consumer.position < 200) == (ZERO, True)
    simulation.run_until(304_000)
    assert (consumer.reads_from, consumer.position > 500) == (ONE, True)
    assert simulation.finish().findings == ()


def test_a_consumer_of_a_removed_leader_is_not_behind_before_its_metadata_is_old() -> None:
    simulation, consumer = removed_leader(130_000)
    outcome = simulation.finish()
    assert (outcome.findings, consumer.reads_from) == ((), ZERO)
    assert outcome.simulated_ms < METADATA_MS_MAX


def grow_old(simulation: Simulation, consumer: Consumer) -> None:
    consumer.metadata_ms = TimeMs(simulation.cluster.now_ms - METADATA_MS_MAX - 2_000)


def read_from_the_leader(simulation: Simulation, consumer: Consumer) -> None:
    consumer.reads_from = simulation.cluster.controller.image.partitions[0].leader


def read_from_a_follower(_simulation: Simulation, consumer: Consumer) -> None:
    consumer.reads_from = BrokerId(2)


def forget_the_partition(simulation: Simulation, _consumer: Consumer) -> None:
    role = simulation.cluster.nodes[ZERO].role
    assert role is not None
    del role.roles[0]


@pytest.mark.parametrize("change", [grow_old, read_from_the_leader, read_from_a_follower, forget_the_partition])
def test_a_consumer_that_is_behind_for_another_reason_is_found(
    change: Callable[[Simulation, Consumer], None],
) -> None:
    simulation, consumer = removed_leader(130_000)
    assert simulation.finish().findings == ()
    assert settled(simulation.cluster) is None
    change(simulation, consumer)
    missing = settled(simulation.cluster)
    assert missing is not None
    assert missing.code == "L12"


def test_without_zookeeper_a_removed_leader_hears_of_it_and_excuses_nobody() -> None:
    simulation, consumer = removed_leader(130_000, has_zookeeper=False)
    assert simulation.finish().findings == ()
    assert consumer.reads_from == ONE
    consumer.position = Offset(0)
    consumer.reads_from = ZERO
    missing = settled(simulation.cluster)
    assert missing is not None
    assert missing.code == "L12"
