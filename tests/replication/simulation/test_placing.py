"""Partitions stand where a placement policy has put them, and an assignment that cannot be is refused."""

from __future__ import annotations

import attrs
import pytest

from broker.errors import UsageError
from broker.ids import BrokerId
from broker.units import DurationMs
from placement.placers.classic import ClassicPlacer
from placement.placers.striped import StripedPlacer
from placement.spec import ReplicaPlacer
from replication.simulation import Options, Simulation, placed, quiet


def six_brokers() -> Options:
    return attrs.evolve(quiet(4, DurationMs(10_000)), brokers=6, racks=3, partitions=8)


@pytest.mark.parametrize("placer", [StripedPlacer(), ClassicPlacer()])
def test_a_cluster_is_made_as_the_placer_says(placer: ReplicaPlacer) -> None:
    options = placed(six_brokers(), placer)
    simulation = Simulation(options)
    simulation.run_until(5_000)
    views = [simulation.partition(partition) for partition in range(8)]
    assert [view.replicas for view in views if view is not None] == list(options.assignment)
    for replicas in options.assignment:
        assert {broker % 3 for broker in replicas} == {0, 1, 2}, "one replica a rack"
    assert simulation.finish().is_clean


def test_other_placers_and_other_seeds_place_otherwise() -> None:
    options = six_brokers()
    striped = placed(options, StripedPlacer()).assignment
    assert striped == placed(options, StripedPlacer()).assignment
    assert striped != placed(options, ClassicPlacer()).assignment
    assert striped != placed(attrs.evolve(options, seed=5), StripedPlacer()).assignment


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((0, 1), "partition 1 is assigned to 0, 1; wanted are 3 different brokers from 0 to 5"),
        ((0, 1, 1), "partition 1 is assigned to 0, 1, 1; wanted are 3 different brokers from 0 to 5"),
        ((0, 1, 6), "partition 1 is assigned to 0, 1, 6; wanted are 3 different brokers from 0 to 5"),
        ((), "partition 1 is assigned to nobody; wanted are 3 different brokers from 0 to 5"),
    ],
)
def test_a_row_that_cannot_be_is_refused(row: tuple[int, ...], message: str) -> None:
    rows = (tuple(map(BrokerId, (0, 1, 2))), tuple(map(BrokerId, row)))
    with pytest.raises(UsageError) as refusal:
        attrs.evolve(six_brokers(), partitions=2, assignment=rows)
    assert str(refusal.value) == message


def test_an_assignment_is_of_all_partitions() -> None:
    with pytest.raises(UsageError) as refusal:
        attrs.evolve(placed(six_brokers(), StripedPlacer()), partitions=9)
    assert str(refusal.value) == "the assignment has 8 partitions of 9"
