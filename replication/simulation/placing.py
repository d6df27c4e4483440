"""A simulated cluster whose partitions a placement policy has placed.

It decides nothing: it asks the placer as Kafka's controller does, with every broker alive and its rack known, and puts
the answer into the options of a simulation.

Constraints: the same options and placer give the same places; the placer draws from Kafka's own generator.

Example: placed(quiet(1, DurationMs(60_000)), StripedPlacer()).assignment

Left out: brokers that are fenced while partitions are made.

Source: Kafka ReplicationControlManager.createTopic, 4.0.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.cluster import BrokerView
from broker.entropy import JavaRandom, derive
from broker.ids import BrokerId
from placement.spec import PlacementSpec, ReplicaPlacer
from replication.simulation.options import Options

_PLACING_STREAM: Final = 9


def placed(options: Options, placer: ReplicaPlacer) -> Options:
    """Return the options with an assignment of all partitions by `placer`, from the options' seed.

    Racks are those of the simulation: broker b stands in rack b modulo the number of racks. Call it last: the number
    of partitions and brokers must be settled. Raises RefusedError where the placer does.
    """
    brokers = [BrokerView(id=BrokerId(b), rack=f"rack-{b % options.racks}") for b in range(options.brokers)]
    spec = PlacementSpec(0, options.partition_count, options.replication_factor)
    rows = placer.place(spec, brokers, JavaRandom(derive(options.seed, _PLACING_STREAM))).tolist()
    return attrs.evolve(options, assignment=tuple(tuple(map(BrokerId, row)) for row in rows))
