"""A schedule of restarts carried out in the simulation: no write is refused, and one broker more makes one refused."""

from __future__ import annotations

from functools import cache

import attrs
import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from placement import StripedPlacer, restart_schedule
from placement.outages.lost import outage
from replication.checkers import Rare
from replication.rules.settings import PartitionSettings
from replication.rules.switches import SOUND
from replication.simulation import Fault, FaultKind, Options, Simulation, placed, quiet
from replication.simulation.options import with_partition_settings

FIRST_MS = 10_000
STOPPED_MS = 20_000
BATCH_MS = 90_000  # A broker is back, unfenced and in sync again well within this time.


@cache
def cluster_of(factor: int) -> Options:
    """Nine brokers on three racks, twelve partitions, min.insync.replicas 2; each writer sends often."""
    options = attrs.evolve(
        quiet(5, DurationMs(FIRST_MS + 4 * BATCH_MS)),
        brokers=9,
        racks=3,
        partitions=12,
        replication_factor=factor,
        producers=4,
        produce_ms=DurationMs(250),
    )
    return placed(with_partition_settings(options, PartitionSettings(rules=SOUND, min_isr=2)), StripedPlacer())


def view_of(options: Options) -> ClusterView:
    return ClusterView.build(
        name="simulated",
        source="simulation",
        format="simulation",
        brokers=[BrokerView(id=BrokerId(number), rack=f"rack-{number % 3}") for number in range(options.brokers)],
        topics=[TopicView("t", min_insync_replicas=2)],
        partitions=PartitionTable(
            topic_index=[0] * options.partitions,
            partition_ids=list(range(options.partitions)),
            replicas=options.assignment,
        ),
    )


def refused_count(options: Options, batches: list[tuple[BrokerId, ...]]) -> int:
    """Carry out the restarts, batch after batch, and return how often a write found too few replicas in sync."""
    plan = tuple(
        Fault(TimeMs(FIRST_MS + number * BATCH_MS), FaultKind.STOP, broker, DurationMs(STOPPED_MS))
        for number, batch in enumerate(batches)
        for broker in batch
    )
    simulation = Simulation(options, plan)
    for number in range(len(batches)):
        simulation.run_until(FIRST_MS + (number + 1) * BATCH_MS - 1)
        views = [simulation.partition(partition) for partition in range(options.partitions)]
        assert all(view is not None and set(view.isr) == set(view.replicas) for view in views), "a batch is not over"
    outcome = simulation.finish()
    assert outcome.findings == ()
    assert outcome.durability.acked_count > 1_000
    return outcome.rare[Rare.WRITE_UNDER_MIN_ISR]


@pytest.mark.deep
@pytest.mark.parametrize("factor", [3, 4])
def test_no_write_is_refused_while_brokers_restart_in_the_order_of_the_schedule(factor: int) -> None:
    options = cluster_of(factor)
    assert refused_count(options, list(restart_schedule(view_of(options)).batches)) == 0


@pytest.mark.deep
@pytest.mark.parametrize("factor", [3, 4])
def test_one_broker_more_in_a_full_batch_makes_writes_refused(factor: int) -> None:
    options = cluster_of(factor)
    view = view_of(options)
    full, *others = restart_schedule(view).batches
    more = next(
        broker for batch in others for broker in batch if outage(view, (*full, broker)).counts.under_min_isr_count
    )
    assert refused_count(options, [(*full, more)]) > 0
