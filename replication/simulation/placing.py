"""Place the partitions of a simulated cluster by a placement policy.

The same options and placer give the same assignment; the placer draws from Kafka's own generator.

Example:

>>> from broker.units import DurationMs
>>> from placement import StripedPlacer
>>> from replication.simulation import placed, quiet
>>> placed(quiet(1, DurationMs(60_000)), StripedPlacer()).assignment
((2, 0, 1), (0, 1, 2))

Source: Kafka ReplicationControlManager.createTopic, 4.0.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.cluster import BrokerView
from broker.entropy import JavaRandom, derive
from broker.ids import BrokerId
from placement.spec import PlacementSpec, ReplicaPlacer, rows_placed
from replication.simulation.options import Options

_PLACING_STREAM: Final = 9


def placed(options: Options, placer: ReplicaPlacer) -> Options:
    """Return the options with an assignment of all partitions by `placer`, drawn from the options' seed.

    Broker b is in rack b modulo the number of racks. Call it last, when the numbers of partitions and brokers are
    final. Raises RefusedError where the placer does.
    """
    brokers = [BrokerView(id=BrokerId(b), rack=f"rack-{b % options.racks}") for b in range(options.brokers)]
    spec = PlacementSpec(0, options.partition_count, options.replication_factor)
    rows = rows_placed(placer, spec, brokers, JavaRandom(derive(options.seed, _PLACING_STREAM))).tolist()
    return attrs.evolve(options, assignment=tuple(tuple(map(BrokerId, row)) for row in rows))
