"""The copyset placer makes few copysets, keeps the rules of every placer, and loads brokers evenly."""

from __future__ import annotations

import numpy as np
import pytest

from broker.cluster import BrokerView, ClusterView, Int32Array, PartitionTable, TopicView
from broker.entropy import SplitMix64
from broker.errors import InvalidReplicationFactorError
from broker.ids import BrokerId
from placement.examples.copyset import CopysetPlacer
from placement.outages.copysets import Copysets, copysets
from placement.placers.registry import load_placer
from placement.spec import PlacementSpec, ReplicaPlacer
from placement.strategies import check_placer


def brokers_of(count: int, racks: int = 0) -> list[BrokerView]:
    return [BrokerView(id=BrokerId(one), rack=f"r{one % racks}" if racks else None) for one in range(count)]


def placed(placer: ReplicaPlacer, brokers: list[BrokerView], topics: int, factor: int = 3) -> Int32Array:
    source = SplitMix64(7)
    return np.concatenate([placer.place(PlacementSpec(0, 30, factor), brokers, source) for _ in range(topics)])


def counted(rows: Int32Array, brokers: list[BrokerView]) -> Copysets:
    count = len(rows)
    table = PartitionTable(topic_index=[0] * count, partition_ids=list(range(count)), replicas=rows)
    view = ClusterView.build(
        name="n", source="s", format="f", partitions=table, brokers=brokers, topics=[TopicView("t")]
    )
    (found,) = copysets(view)
    return found


def test_it_passes_the_checks_of_every_placer() -> None:
    check_placer(CopysetPlacer(), example_count=50)
    check_placer(CopysetPlacer(scatter_width=1), example_count=50)


@pytest.mark.parametrize("racks", [0, 3])
def test_copysets_are_as_few_as_the_scatter_width_allows(racks: int) -> None:
    """Sixty brokers in sets of three, five permutations: a hundred sets, each broker in five, whatever the topics."""
    brokers = brokers_of(60, racks)
    found = counted(placed(CopysetPlacer(), brokers, topics=200), brokers)
    assert found.copyset_count <= 100
    assert found.copyset_count_min is not None
    assert found.copyset_count <= 1.1 * found.copyset_count_min
    assert found.scatter_width_max is not None
    assert found.scatter_width_max <= 10
    kafkas = counted(placed(load_placer("striped"), brokers, topics=200), brokers)
    if racks:
        assert kafkas.copyset_count > 20 * found.copyset_count


def test_leaders_and_replicas_are_even() -> None:
    brokers = brokers_of(60, 3)
    rows = placed(CopysetPlacer(), brokers, topics=400)
    leaders, replicas = np.bincount(rows[:, 0], minlength=60), np.bincount(rows.ravel(), minlength=60)
    assert leaders.max() < 1.2 * leaders.mean()
    assert replicas.max() < 1.2 * replicas.mean()


def test_a_lost_broker_has_many_to_take_over_its_leaders() -> None:
    brokers = brokers_of(60, 3)
    rows = placed(CopysetPlacer(), brokers, topics=400)
    second = rows[rows[:, 0] == 5][:, 1]
    assert np.bincount(second).max() < 0.4 * second.size


def test_what_does_not_divide_is_filled_up() -> None:
    brokers = brokers_of(7)
    found = counted(placed(CopysetPlacer(scatter_width=2), brokers, topics=9), brokers)
    assert (found.copyset_count, found.broker_count) == (3, 7)


def test_a_factor_that_brokers_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidReplicationFactorError) as caught:
        CopysetPlacer().place(PlacementSpec(0, 1, 3), brokers_of(2), SplitMix64(1))
    assert str(caught.value) == (
        "replication factor 3 needs as many brokers, one of them unfenced; there are 2, 0 of them fenced"
    )
