"""Find brokers far above the mean because of small racks, and the effect of one more broker in those racks.

A rack is named if its brokers hold at least `FAR` times the mean in the most even loads that the rules allow.

Example: racks of 3, 3 and 1 brokers, ten partitions of factor 3: the broker that is alone holds ten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from broker.cluster import BoolArray, ClusterView, Int32Array, Int64Array
from broker.wording import counted, listed
from placement.balance.loads import racks_by_name
from placement.balance.reachable import Classes, Groups, reach

FAR: Final = 1.5
_NAMED_MAX: Final = 5
_WHY: Final = "partitions stand on as many racks as they can"


def is_rack_limit(note: str) -> bool:
    """Return whether a note of a plan is a sentence of `rack_limits`."""
    return _WHY in note


def rack_limits(view: ClusterView, rows: Int32Array, live: BoolArray) -> tuple[str, ...]:
    """Return a sentence for each rack whose brokers must hold far more than the mean; none without racks.

    `rows` int32[P, W] are the replicas, positions of brokers, and `live` bool[B] the brokers that may hold them. Cost:
    O(replicas) for each such rack.
    """
    return tuple(_limits(view, rows, live))


def _limits(view: ClusterView, rows: Int32Array, live: BoolArray) -> Iterator[str]:
    names, racks = racks_by_name(view)
    best = _best(rows, racks, live) if names and view.partitions_complete else None
    if best is None or not live.any():
        return
    mean = float(best[live].mean())
    for rack, name in enumerate(names):
        inside = live & (racks == rack)
        if not inside.any() or best[inside].min() < FAR * mean or best[inside].min() < best[live].max():
            continue
        more = _best(rows, np.append(racks, rack), np.append(live, True))
        if more is None:
            continue
        there = np.append(inside, True)
        ids = [str(number) for number in view.broker_ids[inside].tolist()]
        shown = ("broker " if len(ids) == 1 else "brokers ") + listed(ids[:_NAMED_MAX], len(ids))
        others = np.append(live & ~inside, False)
        yield (
            f"{shown} must hold {_range(best[inside])} replicas at a mean of {mean:.1f}, as rack {name} has "
            f"{counted(len(ids), 'broker')} of {int(live.sum())} and {_WHY}; "
            f"with one broker more in {name}, each there holds {_range(more[there])} and others {_range(more[others])}"
        )


def _best(rows: Int32Array, racks: Int64Array, live: BoolArray) -> Int64Array | None:
    """Return the most even replicas of brokers, int64[n], 0 for those that are not live."""
    groups = Groups.make(racks, ~live)
    found = reach(groups, Classes.of_rows(rows, groups, None, None), "replicas")
    best = np.zeros(live.size, dtype=np.int64)
    if found is None:
        return None
    best[live] = found.target
    return best


def _range(loads: Int64Array) -> str:
    if not loads.size:
        return "none"
    low, high = int(loads.min()), int(loads.max())
    return f"{low}" if low == high else f"{low} to {high}"
