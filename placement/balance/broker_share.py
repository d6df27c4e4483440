"""Define the constraint broker-share: two brokers' shares of one call differ by no more than the placer promises.

What it decides: for one call of a placer (one topic created or grown): the largest difference in leaders and in
replicas between two brokers that the placer's rule allows, and which brokers are beyond it. A placer promises nothing
about several calls: differences add up, which is what the measures of balance show.

*Classic*, N brokers, factor F, no racks or racks of equal size, any start index and shift:

- leaders differ by at most 1: partition p is led from place (p + start) mod N, so consecutive
  partitions are led by consecutive places of the ring.
- replicas differ by at most F if the call's first partition is a multiple of N (0 for a new topic),
  else by at most 2 F - 1. Between multiples of N the shift stands still, so follower j walks the ring
  as the leader does, at a fixed distance (with equal racks, rejections are the same from every
  place). A whole round gives every broker one replica from each column; a part of a round gives an
  arc of brokers one each. The leader column is one arc in all; each of the F - 1 others is at most
  one arc at the end, and one more at the beginning when the call begins within a round.

With unequal racks nothing is promised for replicas: a rack of one broker takes a replica of
every partition when F reaches the number of racks. Leaders still differ by at most 1.

*Striped*, unfenced brokers only:

- without racks, or with a single one: leaders differ by at most 1 and replicas by at most F. The
  list of brokers is walked one place further for each partition and shuffled after each whole round.
- with several racks nothing is promised. The rack and the place within it advance together, so with
  two racks of two brokers one broker of each rack leads the whole round; the shuffle between rounds makes
  that a random walk, not a balance. With F smaller than the number of racks, lists of racks that were not
  touched are not rewound, which skews more.

Verified by search over random brokers, factors, starts and lengths, with placers written apart from
these; each bound is attained there too, for factors well below the number of brokers.

Example: 3 brokers, classic, 4 partitions, factor 1: leaders 2, 1, 1 keep the promise; 3, 1, 0 do not.

Left out: shares by bytes, which no placer looks at.

Source: ours, from Kafka 4.0 AdminUtils and StripedReplicaPlacer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.balance.constraints import BrokerRows, Constraint, RuleKind, Violation
from placement.spec import Assignment


@attrs.frozen(kw_only=True)
class ShareBound:
    """Define the largest difference between two brokers that a placer promises; None if it promises nothing."""

    leaders: int | None
    replicas: int | None


Promise: TypeAlias = Callable[[Assignment, BrokerRows], ShareBound]


def classic_bound(assignment: Assignment, brokers: BrokerRows) -> ShareBound:
    """Return the classic placer's promise for `assignment`, the result of one call on all of `brokers`."""
    sizes = Counter(broker.rack for broker in brokers)
    even = len(set(sizes.values())) <= 1
    factor = assignment.replicas.shape[1]
    first = int(assignment.partition_ids.min(initial=2**31 - 1)) if assignment.partition_count else 0
    whole = not brokers or first % len(brokers) == 0
    return ShareBound(leaders=1, replicas=(factor if whole else max(2 * factor - 1, 0)) if even else None)


def striped_bound(assignment: Assignment, brokers: BrokerRows) -> ShareBound:
    """Return the striped placer's promise for `assignment`, the result of one call on `brokers`."""
    if len({broker.rack for broker in brokers}) > 1:
        return ShareBound(leaders=None, replicas=None)
    return ShareBound(leaders=1, replicas=assignment.replicas.shape[1])


def broker_share(promise: Promise) -> Constraint:
    """Return the constraint that one call keeps `promise` between unfenced brokers; its subjects are brokers.

    A subject is a place in the list of brokers. The assignment must stand on registered brokers only.
    """

    def find(assignment: Assignment, brokers: BrokerRows) -> Int64Array:
        bound = promise(assignment, brokers)
        judged = np.array([not broker.fenced for broker in brokers], dtype=np.bool_)
        beyond = np.zeros(len(brokers), dtype=np.bool_)
        leads, holds = _led_counts(assignment, brokers), _held_counts(assignment, brokers)
        for allowed, shares in ((bound.leaders, leads), (bound.replicas, holds)):
            if allowed is not None and judged.any():
                beyond |= judged & (shares > shares[judged].min() + allowed)
        return np.flatnonzero(beyond).astype(np.int64, copy=False)

    def explain(assignment: Assignment, brokers: BrokerRows, place: int) -> Violation:
        bound = promise(assignment, brokers)
        words = [
            _excess(word, shares, allowed, brokers, place)
            for word, shares, allowed in (
                ("leads", _led_counts(assignment, brokers), bound.leaders),
                ("holds", _held_counts(assignment, brokers), bound.replicas),
            )
            if allowed is not None
        ]
        return Violation(
            constraint="broker-share",
            topic=assignment.topics[0] if len(assignment.topics) == 1 else None,
            partition=None,
            brokers=(brokers[place].id,),
            racks=(brokers[place].rack or "",),
            detail="; ".join(word for word in words if word),
        )

    sentence = "What one call gives two brokers differs by no more than the placer promises."
    return Constraint("broker-share", RuleKind.SOFT, sentence, find, explain)


CLASSIC_SHARE: Final = broker_share(classic_bound)
STRIPED_SHARE: Final = broker_share(striped_bound)


def _excess(word: str, shares: Int64Array, allowed: int, brokers: BrokerRows, place: int) -> str:
    least = min((row for row, broker in enumerate(brokers) if not broker.fenced), key=lambda row: (shares[row], row))
    difference = int(shares[place] - shares[least])
    if difference <= allowed:
        return ""
    return (
        f"broker {brokers[place].id} {word} {int(shares[place])}, {difference} more than broker "
        f"{brokers[least].id}, where {allowed} is the most between two"
    )


def _held_counts(assignment: Assignment, brokers: BrokerRows) -> Int64Array:
    return _counted(assignment.replicas.ravel(), brokers)


def _led_counts(assignment: Assignment, brokers: BrokerRows) -> Int64Array:
    return _counted(assignment.replicas[:, 0] if assignment.replicas.shape[1] else assignment.replicas.ravel(), brokers)


def _counted(replicas: Int32Array, brokers: BrokerRows) -> Int64Array:
    ids = np.array([broker.id for broker in brokers], dtype=np.int32)
    order = np.argsort(ids)
    rows = np.searchsorted(ids, replicas[replicas >= 0], sorter=order)
    counts = np.bincount(rows, minlength=ids.size).astype(np.int64)
    placed = np.empty_like(counts)
    placed[order] = counts
    return placed
