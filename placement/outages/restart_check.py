"""Check a schedule of restarts and its lower bound, from the constraints alone.

How: a certificate is a weight of 0 or 1 for each broker. If no batch that the constraints allow holds more than `cap`
brokers of weight 1, then

    batches >= ceil( number of these brokers / cap )

If no two of them may restart together, cap is 1; else it is the least that a single constraint with all of them, or the
largest batch, allows.

Example: brokers 0, 1, 2 of which no two may restart together need three batches.

    >>> limits = Limits(
    ...     brokers=np.arange(3), members=np.array([[0, 1, 2]], np.int32), budget=np.array([1], np.int32),
    ...     partition_count=np.array([1]), batch_max=3,
    ... )
    >>> check_schedule(limits, ((0,), (1,), (2,)), np.array([1, 1, 1]))
    Checked(faults=(), bound=3, by='weights')
    >>> check_schedule(limits, ((0, 1), (2,)), np.array([1, 1, 1])).faults
    ('batch 1 holds 2 of the brokers 0, 1, 2, of which 1 may restart at once',)

Source: a clique bounds the colours of a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.errors import RefusedError
from broker.row_flags import count_each, count_in_row
from placement.outages.restart_budget import Limits

ByteArray: TypeAlias = NDArray[np.uint8]
_FAULTS_MAX: Final = 10
BROKERS_MAX: Final = 10_000
"""Ten times the largest clusters known; each pair of brokers takes two bytes."""


@attrs.frozen
class Checked:
    """Hold the faults of a schedule, and the number of batches that every schedule needs, as the weights prove."""

    faults: tuple[str, ...]
    bound: int
    by: str = "weights"


@attrs.frozen(kw_only=True, eq=False)
class Conflicts:
    """Hold the constraints as arrays for loops: which pairs clash, and the hyperedges by broker.

    `clash` uint8[N, N]; `hyperedge_of` int32[N, D], the hyperedges of each broker, -1 pads; `budget` int32[H].
    """

    clash: ByteArray
    hyperedge_of: Int32Array
    budget: Int32Array


def conflicts_of(limits: Limits) -> Conflicts:
    """Return the constraints of `limits` as arrays; raise RefusedError for more than `BROKERS_MAX` brokers."""
    count = limits.brokers.size
    if count > BROKERS_MAX:
        raise RefusedError(f"{count:,} brokers are to restart; a schedule is made for at most {BROKERS_MAX:,}")
    square = np.zeros((count + 1, count + 1), dtype=np.uint8)  # Padding, -1, marks the last row and column.
    pairwise = limits.members[limits.budget == 1]
    for column in pairwise.T:
        square[column[:, None], pairwise] = 1
    np.fill_diagonal(square, 0)
    clash = np.ascontiguousarray(square[:count, :count])
    hyper = np.flatnonzero(limits.budget > 1)
    members = limits.members[hyper]
    degrees = count_each(members, count)
    hyperedge_of = np.full((count, int(degrees.max(initial=0))), -1, dtype=np.int32)
    filled = np.zeros(count, dtype=np.int64)
    for edge, row in enumerate(members.tolist()):
        for broker in row:
            if broker >= 0:
                hyperedge_of[broker, filled[broker]] = edge
                filled[broker] += 1
    return Conflicts(clash=clash, hyperedge_of=hyperedge_of, budget=limits.budget[hyper])


def check_schedule(limits: Limits, batches: Sequence[Sequence[int]], weights: Int64Array) -> Checked:
    """Return the faults of `batches` (places in `limits.brokers`), and the lower bound that `weights` prove."""
    return Checked(tuple(_faults(limits, batches))[:_FAULTS_MAX], lower_bound(limits, weights))


def lower_bound(limits: Limits, weights: Int64Array, conflicts: Conflicts | None = None) -> int:
    """Return the number of batches that `weights` prove every schedule to need; 0 for weights other than 0 and 1.

    `conflicts` are those of the limits, where the caller knows them already.
    """
    if not limits.brokers.size or weights.shape != limits.brokers.shape or not np.isin(weights, (0, 1)).all():
        return 0
    chosen = np.flatnonzero(weights)
    clash = (conflicts_of(limits) if conflicts is None else conflicts).clash
    if np.count_nonzero(clash[np.ix_(chosen, chosen)]) == chosen.size * (chosen.size - 1):
        return int(chosen.size)
    inside = np.zeros(limits.brokers.size + 1, dtype=np.bool_)
    inside[chosen] = True
    covers = count_in_row(inside[limits.members]) == chosen.size  # Padding, -1, reads the last entry.
    cap = min([limits.batch_max, *limits.budget[covers].tolist()])
    return -(-int(chosen.size) // int(cap))


def _faults(limits: Limits, batches: Sequence[Sequence[int]]) -> Iterator[str]:
    placed = np.concatenate([np.asarray(batch, dtype=np.int64) for batch in (*batches, ())])
    times = np.bincount(placed, minlength=limits.brokers.size) if placed.size else np.zeros(limits.brokers.size)
    for broker in np.flatnonzero(times != 1).tolist():
        yield f"broker {broker} restarts {int(times[broker])} times"
    for number, batch in enumerate(batches, start=1):
        if len(batch) > limits.batch_max:
            yield f"batch {number} holds {len(batch)} brokers; at most {limits.batch_max} are allowed"
        inside = np.zeros(limits.brokers.size + 1, dtype=np.bool_)
        inside[list(batch)] = True
        held = count_in_row(inside[limits.members])  # Padding, -1, reads the last entry.
        for row in np.flatnonzero(held > limits.budget).tolist():
            names = ", ".join(str(each) for each in limits.members[row].tolist() if each >= 0)
            yield (
                f"batch {number} holds {held[row]} of the brokers {names}, of which {limits.budget[row]} may restart "
                "at once"
            )
