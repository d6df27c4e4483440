"""Place each partition on the least loaded brokers: an example of a policy of one's own.

Replicas stand on as many racks as there can be; a fenced broker follows only where its rack has no other; each replica
goes to the broker with the fewest replicas, those of `held` counted; the broker leads that leads least in this call.

Example: brokers 1 and 2 hold 10 replicas each and 3 is new: LeastLoadedPlacer(held=((1, 10), (2, 10)))
puts the ten partitions of a topic of factor 1 on broker 3. Check a policy with `placement.strategies.check_placer`;
name it under the entry point `brokerside.placers`, and the CLI knows it (KIP-660).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs
import numpy as np

from broker.cluster import BrokerView, Int32Array
from broker.entropy import RandomSource
from broker.errors import InvalidReplicationFactorError
from placement.placers.usable import usable_brokers
from placement.spec import PlacementSpec


@attrs.frozen
class LeastLoadedPlacer:
    """Place by load; `held` gives the replicas that brokers already have, as (broker id, replicas)."""

    held: tuple[tuple[int, int], ...] = ()

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        """Return int32[partition_count, replication_factor], the preferred leader of each row first.

        Raises InvalidReplicationFactorError for a factor that these brokers cannot hold.
        """
        brokers = usable_brokers(brokers)
        if not 0 < spec.replication_factor <= len(brokers) or all(broker.fenced for broker in brokers):
            raise InvalidReplicationFactorError(
                f"replication factor {spec.replication_factor} needs as many brokers, one of them unfenced; "
                f"there are {len(brokers)}, {sum(broker.fenced for broker in brokers)} of them fenced"
            )
        spec.check_size()
        order = list(range(len(brokers)))
        entropy.shuffle(order)
        shuffled = [brokers[place] for place in order]
        loads, leads = Counter[int](dict(self.held)), Counter[int]()
        rows = [_row(shuffled, spec.replication_factor, loads, leads) for _ in range(spec.partition_count)]
        return np.array(rows, dtype=np.int32).reshape(spec.partition_count, spec.replication_factor)


def _row(brokers: Sequence[BrokerView], factor: int, loads: Counter[int], leads: Counter[int]) -> list[int]:
    chosen = [min((broker for broker in brokers if not broker.fenced), key=lambda broker: loads[broker.id])]
    while len(chosen) < factor:
        used = Counter(broker.rack for broker in chosen)
        free = [broker for broker in brokers if broker not in chosen]
        chosen.append(min(free, key=lambda broker: (used[broker.rack], broker.fenced, loads[broker.id])))
    chosen.sort(key=lambda broker: (broker.fenced, leads[broker.id]))
    loads.update(broker.id for broker in chosen)
    leads[chosen[0].id] += 1
    return [broker.id for broker in chosen]
