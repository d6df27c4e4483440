"""Place replicas round-robin over the brokers without regard to racks: a naive policy that fails the checks.

Partition p stands on brokers p, p + 1, …, counted round the list. It looks reasonable, it is even, and it loses a
partition with its rack: `placement.strategies.check_placer(RoundRobinPlacer())` finds a case of three brokers.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from broker.cluster import BrokerView, Int32Array
from broker.entropy import RandomSource
from broker.errors import InvalidReplicationFactorError
from placement.spec import PlacementSpec


@attrs.frozen
class RoundRobinPlacer:
    """Place round-robin without regard to racks; for demonstration only."""

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], _: RandomSource) -> Int32Array:
        """Return int32[partition_count, replication_factor]; raise InvalidReplicationFactorError beyond the brokers."""
        if not 0 < spec.replication_factor <= len(brokers):
            raise InvalidReplicationFactorError(
                f"replication factor {spec.replication_factor} needs as many brokers; there are {len(brokers)}"
            )
        spec.check_size()
        ids = np.array([broker.id for broker in brokers], dtype=np.int32)
        first = np.arange(spec.start_partition, spec.start_partition + spec.partition_count)
        rows: Int32Array = ids[(first[:, None] + np.arange(spec.replication_factor)) % ids.size]
        return rows
