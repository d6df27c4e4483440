"""Check a proof by cases: in each some brokers restart together or apart, and weights prove the bound.

What it decides: whether every schedule has more than so many batches. Two brokers either restart in the same batch or
they do not; so if each of both cases needs so many batches, every schedule does, and each case may be split again.
Nothing here knows how the cases were found.

Constraints: only pairs are looked at: where hyperedges or a largest batch count, no case is confirmed.

How: brokers that restart together are one broker of their weights together, which clashes with whatever one of them
clashes with; brokers that restart apart clash. No batch of a case may weigh more than `cap`, the largest weight for
which

    batches >= ceil( sum of the weights / cap )

is the bound; `heaviest_batch` looks for a heavier one and finds none.

Example: of five brokers in a ring each two neighbours clash; 1/2 for each proves 2.5, so 3 batches, without cases.
Either 0 and 2 are together, or apart.

    >>> ring = np.zeros((5, 5), dtype=np.uint8)
    >>> for each in range(5):
    ...     ring[each, (each + 1) % 5] = ring[(each + 1) % 5, each] = 1
    >>> cases = (
    ...     Case(splits=(Split(0, 2, True),), weights=(1, 0, 0, 1, 1)),
    ...     Case(splits=(Split(0, 2, False),), weights=(1, 1, 1, 0, 0)),
    ... )
    >>> cases_prove(ring, cases, 3), cases_prove(ring, cases[:1], 3)
    (True, False)

Source: Zykov 1949; Mehrotra & Trick, "A column generation approach for graph coloring", INFORMS Journal on Computing,
1996.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int64Array
from placement.outages.restart_search_kernel import ByteArray, heaviest_batch

CASE_STEPS_MAX: Final = 60_000_000
CASES_MAX: Final = 1_000


@attrs.frozen
class Split:
    """Say of two brokers (places in `limits.brokers`) that they restart together, or apart."""

    one: int
    other: int
    together: bool


@attrs.frozen
class Case:
    """Hold what is so in a case, in the order in which it was split off, and a weight for each broker."""

    splits: tuple[Split, ...]
    weights: tuple[int, ...]


def contracted(clash: ByteArray, splits: Sequence[Split]) -> tuple[ByteArray, Int64Array] | None:
    """Return the clashes uint8[G, G] between groups that restart together, and the group int64[N] of each broker.

    None if the case cannot be: brokers of one group clash.
    """
    group = np.arange(clash.shape[0])
    for split in splits:
        if split.together:
            low, high = sorted((int(group[split.one]), int(group[split.other])))
            group[group == high] = low
    group = np.unique(group, return_inverse=True)[1].astype(np.int64)
    met = np.zeros((int(group.max()) + 1,) * 2, dtype=np.uint8)
    ones, others = np.nonzero(clash)
    met[group[ones], group[others]] = 1
    for split in splits:
        if not split.together:
            one, other = group[split.one], group[split.other]
            met[one, other] = met[other, one] = 1
    return None if np.diag(met).any() else (met, group)


def cases_prove(clash: ByteArray, cases: Sequence[Case], batch_count: int) -> bool:
    """Return whether every schedule has `batch_count` batches or more, as the cases say."""
    if len(cases) > CASES_MAX or not _covers([case.splits for case in cases]):
        return False
    return all(_proves(clash, case, batch_count) for case in cases)


def _covers(cases: Sequence[tuple[Split, ...]]) -> bool:
    """Return whether every schedule is in one of the cases, which splits of pairs of brokers have made.

    A case without splits holds every schedule. Else all cases begin with the same pair, and both halves are covered.
    """
    if any(not splits for splits in cases):
        return True
    first = {(splits[0].one, splits[0].other) for splits in cases}
    return len(first) == 1 and all(
        _covers([splits[1:] for splits in cases if splits[0].together is together]) for together in (True, False)
    )


def _proves(clash: ByteArray, case: Case, batch_count: int) -> bool:
    found = contracted(clash, case.splits)
    if found is None:
        return True
    met, group = found
    given = np.array(case.weights, dtype=np.int64)
    if given.shape != group.shape or int(given.min(initial=0)) < 0:
        return False
    weights = np.zeros(met.shape[0], dtype=np.int64)
    np.add.at(weights, group, given)
    found_heavier, _ = heavier(met, weights, batch_count)
    return found_heavier is not None and not found_heavier.size


def heavier(
    clash: ByteArray, weights: Int64Array, batch_count: int, *, steps_max: int = CASE_STEPS_MAX
) -> tuple[Int64Array | None, int]:
    """Return a batch so heavy that the weights prove less than `batch_count` batches, and the comparisons made.

    The batch is empty if there is none; None if the search is cut off, or the weights prove nothing.
    """
    total, count = int(weights.sum()), weights.size
    if batch_count < 2 or not total:
        return None, 0
    order = np.lexsort([np.arange(count), -weights]).astype(np.int64)
    best = np.zeros(count, dtype=np.uint8)
    tables = (clash, np.zeros((count, 0), dtype=np.int32), np.zeros(0, dtype=np.int32))
    cap = (total - 1) // (batch_count - 1)
    order = order[weights[order] > 0]
    steps = heaviest_batch(tables, count, weights, order, steps_max, cap, best)[1]
    found = np.flatnonzero(best).astype(np.int64)
    return (found if found.size or steps <= steps_max else None), int(steps)
