"""Place each partition on one of few sets of brokers, so that losing some brokers at once rarely loses a partition.

Kafka's striped placer on racks makes nearly as many sets of brokers as there are partitions: then any few brokers that
are lost together hold some partition whole. Here each broker is in about `scatter_width` / (factor - 1) sets, and every
partition stands on one of them. Sets depend on the brokers, the factor and `seed` alone, not on the topic, or every
topic would add its own.

How: the brokers are permuted scatter_width / (factor - 1) times and cut into sets of `factor`; each set takes the next
broker of the rack that it uses least and that has most brokers left. What is left over at the end is filled up with
brokers of other sets. Partitions go round the unfenced brokers from a random one, in a random turn; a broker leads its
set of that turn, and the other brokers of the set follow, in an order that the turn decides, too.

    >>> from broker.entropy import SplitMix64
    >>> from broker.ids import BrokerId
    >>> brokers = [BrokerView(id=BrokerId(one)) for one in range(6)]
    >>> rows = CopysetPlacer(scatter_width=2).place(PlacementSpec(0, 100, 3), brokers, SplitMix64(1))
    >>> len({frozenset(row) for row in rows.tolist()})
    2

Left out: keeping the sets when brokers join or leave, as Tiered Replication does (USENIX ATC 2015); bytes.
Source: Cidon et al., "Copysets: reducing the frequency of data loss in cloud storage", USENIX ATC 2013, section 4.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import BrokerView, Int32Array
from broker.entropy import RandomSource, SplitMix64
from broker.errors import InvalidReplicationFactorError
from placement.placers.usable import usable_brokers
from placement.spec import PlacementSpec

_TURNS: Final = 1 << 20  # More than any broker has sets, and nearly a multiple of each such number.


@attrs.frozen
class CopysetPlacer:
    """Place on copysets; each broker shares partitions with about `scatter_width` others, or more where racks ask."""

    scatter_width: int = 10
    seed: int = 0

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        """Return int32[partition_count, replication_factor], the preferred leader of each row first.

        Raises InvalidReplicationFactorError for a factor that these brokers cannot hold.
        """
        usable = tuple(usable_brokers(brokers))
        leading = [broker.id for broker in usable if not broker.fenced]
        if not 0 < spec.replication_factor <= len(usable) or not leading:
            raise InvalidReplicationFactorError(
                f"replication factor {spec.replication_factor} needs as many brokers, one of them unfenced; "
                f"there are {len(usable)}, {len(usable) - len(leading)} of them fenced"
            )
        spec.check_size()
        sets = _sets_by_broker(usable, spec.replication_factor, self.scatter_width, self.seed)
        first, first_turn = entropy.next_int_bound(len(leading)), entropy.next_int_bound(_TURNS)
        rows = np.empty((spec.partition_count, spec.replication_factor), dtype=np.int32)
        for place in range(spec.partition_count):
            turn, at = divmod(first + place, len(leading))
            rows[place] = _row(leading[at], sets[leading[at]], first_turn + turn)
        return rows


def _row(leader: int, sets: Sequence[tuple[int, ...]], turn: int) -> list[int]:
    """Return the next set of a leader, it first, the others turned so that each follows first in its turn."""
    chosen = sets[turn % len(sets)]
    others = [broker for broker in chosen if broker != leader]
    start = turn // len(sets) % max(1, len(others))
    return [leader, *others[start:], *others[:start]]


@functools.lru_cache(maxsize=64)
def _sets_by_broker(
    brokers: tuple[BrokerView, ...], factor: int, scatter_width: int, seed: int
) -> dict[int, tuple[tuple[int, ...], ...]]:
    """Return the copysets of each broker, in the order in which they were made."""
    source = SplitMix64(seed)
    made: dict[int, list[tuple[int, ...]]] = {broker.id: [] for broker in brokers}
    for _ in range(max(1, -(-scatter_width // max(1, factor - 1)))):
        for chosen in _permutation(brokers, factor, source):
            for broker in chosen:
                if chosen not in made[broker]:
                    made[broker].append(chosen)
    return {broker: tuple(sets) for broker, sets in made.items()}


def _permutation(brokers: Sequence[BrokerView], factor: int, source: RandomSource) -> list[tuple[int, ...]]:
    """Return sets that hold every broker, each once but for what fills up the last of them."""
    order = list(range(len(brokers)))
    source.shuffle(order)
    left = [brokers[place] for place in order]
    unused = Counter(broker.rack for broker in left)
    free, sets = list(left), []
    while free:
        chosen: list[BrokerView] = []
        while len(chosen) < factor:
            used = Counter(broker.rack for broker in chosen)
            again = [broker for broker in left if broker not in chosen]
            # The rack rule first, then brokers without a set, then the rack with most of them left.
            fresh = set(map(id, free))
            best = min(again, key=lambda one: (used[one.rack], id(one) not in fresh, -unused[one.rack]))
            if id(best) in fresh:
                free = [broker for broker in free if broker is not best]
                unused[best.rack] -= 1
            chosen.append(best)
        sets.append(tuple(sorted(int(broker.id) for broker in chosen)))
    return sets
