"""Check a schedule of restarts and its lower bound, from the constraints alone.

What it decides: whether every broker restarts once, no batch breaks a constraint, and no schedule has fewer batches
than the certificate says. Nothing here knows how the schedule was found.

How: a certificate is a weight for each broker. If no batch that the constraints allow weighs more than `cap`, then

    batches >= ceil( sum of the weights / cap )

The heaviest batch is found exactly (restart_search_kernel.py). A clique (brokers of which no two may restart together)
is the case of weight 1 each and cap 1. Where weights prove too little, a search for a schedule of one batch fewer that
ends without one proves that there is none.

Cost: exponential in the worst case, so at most `steps_max` comparisons are made; beyond it the bound is not confirmed.

Example: brokers 0, 1, 2 of which no two may restart together need three batches.

    >>> limits = Limits(
    ...     brokers=np.arange(3), members=np.array([[0, 1, 2]], np.int32), budget=np.array([1], np.int32),
    ...     partition_count=np.array([1]), batch_max=3,
    ... )
    >>> check_schedule(limits, ((0,), (1,), (2,)), np.array([1, 1, 1]))
    Checked(faults=(), bound=3, by='weights')
    >>> check_schedule(limits, ((0, 1), (2,)), np.array([1, 1, 1])).faults
    ('batch 1 holds 2 of the brokers 0, 1, 2, of which 1 may restart at once',)

Source: weak duality of fractional set covering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.row_flags import count_in_row
from placement.outages.restart_budget import Limits
from placement.outages.restart_cases import Case, cases_prove
from placement.outages.restart_search_kernel import ByteArray, fill_within, heaviest_batch

STEPS_MAX: Final = 100_000_000  # About a second.
SEARCH_STEPS_MAX: Final = 3_500_000_000  # About three seconds; a proof for 155 brokers takes 3 billion.
_FAULTS_MAX: Final = 10
FOUND: Final = 1
NONE: Final = 0
CUT_OFF: Final = -1
Proof: TypeAlias = Literal["weights", "search", "cases"]


@attrs.frozen
class Checked:
    """Hold the faults of a schedule, and the number of batches that every schedule needs, as far as confirmed.

    `by` says what confirmed it: the weights, weights in each of some cases (restart_cases.py), or a search for one
    batch fewer that found none.
    """

    faults: tuple[str, ...]
    bound: int
    by: Proof


@attrs.frozen(kw_only=True, eq=False)
class Conflicts:
    """Hold the constraints as arrays for loops: which pairs clash, and the hyperedges by broker.

    `clash` uint8[N, N]; `hyperedge_of` int32[N, D], the hyperedges of each broker, -1 pads; `budget` int32[H].
    """

    clash: ByteArray
    hyperedge_of: Int32Array
    budget: Int32Array


def conflicts_of(limits: Limits) -> Conflicts:
    """Return the constraints of `limits` as arrays."""
    count = limits.brokers.size
    clash = np.zeros((count, count), dtype=np.uint8)
    pairwise = limits.members[limits.budget == 1]
    width = pairwise.shape[1]
    for one in range(width):
        for other in range(width):
            if one != other:
                both = (pairwise[:, one] >= 0) & (pairwise[:, other] >= 0)
                clash[pairwise[both, one], pairwise[both, other]] = 1
    hyper = np.flatnonzero(limits.budget > 1)
    members = limits.members[hyper]
    degrees = np.bincount(members[members >= 0], minlength=count)
    hyperedge_of = np.full((count, int(degrees.max(initial=0))), -1, dtype=np.int32)
    filled = np.zeros(count, dtype=np.int64)
    for edge, row in enumerate(members.tolist()):
        for broker in row:
            if broker >= 0:
                hyperedge_of[broker, filled[broker]] = edge
                filled[broker] += 1
    return Conflicts(clash=clash, hyperedge_of=hyperedge_of, budget=limits.budget[hyper])


def check_schedule(
    limits: Limits,
    batches: Sequence[Sequence[int]],
    weights: Int64Array,
    *,
    by_weights: int = 0,
    by_search: int = 0,
    cases: Sequence[Case] = (),
    steps_max: int = STEPS_MAX,
) -> Checked:
    """Return the faults of `batches` (places in `limits.brokers`), and the lower bound that is confirmed.

    The bound is what `weights` prove; or the number of batches if the `cases` prove it; or `by_search`, if that is more
    and no schedule has one batch fewer. `by_weights` is what the weights are said to prove: that is seen sooner.
    """
    faults = tuple(_faults(limits, batches))[:_FAULTS_MAX]
    bound = lower_bound(limits, weights, steps_max=steps_max, claimed=by_weights or len(batches))
    if cases and len(batches) > bound and cases_prove(conflicts_of(limits).clash, cases, len(batches)):
        return Checked(faults, len(batches), "cases")
    if by_search > bound and within(limits, conflicts_of(limits), by_search - 1, SEARCH_STEPS_MAX)[0] == NONE:
        return Checked(faults, by_search, "search")
    return Checked(faults, bound, "weights")


def within(limits: Limits, conflicts: Conflicts, batch_count: int, steps_max: int) -> tuple[int, Int32Array]:
    """Return FOUND, NONE or CUT_OFF, and for FOUND the batch of each broker in a schedule of `batch_count` or fewer."""
    batch_of = np.full(limits.brokers.size, -1, dtype=np.int32)
    if batch_count < 1:
        return (NONE if limits.brokers.size else FOUND), batch_of
    tables = (conflicts.clash, conflicts.hyperedge_of, conflicts.budget)
    return int(fill_within(tables, limits.batch_max, batch_count, steps_max, batch_of)), batch_of


def lower_bound(
    limits: Limits,
    weights: Int64Array,
    *,
    steps_max: int = STEPS_MAX,
    claimed: int = 0,
    conflicts: Conflicts | None = None,
) -> int:
    """Return the number of batches that `weights` prove every schedule to need; 0 if it cannot be confirmed.

    With `claimed` batches only what weighs too much for these is looked for, which takes far fewer comparisons.
    `conflicts` are those of the limits, where the caller knows them already.
    """
    if not limits.brokers.size or weights.shape != limits.brokers.shape or int(weights.min()) < 0:
        return 0
    total = int(weights.sum())
    least = (total - 1) // (claimed - 1) if claimed > 1 and total else 0
    known = conflicts_of(limits) if conflicts is None else conflicts
    batch, weight, steps = heaviest(known, limits.batch_max, weights, steps_max, least=least)
    if steps > steps_max or not total:
        return 0
    return -(-total // weight) if batch.size else claimed


def heaviest(
    conflicts: Conflicts, batch_max: int, weights: Int64Array, steps_max: int, *, least: int = 0
) -> tuple[Int64Array, int, int]:
    """Return the heaviest batch found, its weight, and the comparisons made: above `steps_max` if cut off.

    Only batches heavier than `least` are looked for; if there is none, `least` is the weight.
    """
    order = np.lexsort([np.arange(weights.size), -weights]).astype(np.int64)
    order = order[weights[order] > 0]
    best = np.zeros(weights.size, dtype=np.uint8)
    tables = (conflicts.clash, conflicts.hyperedge_of, conflicts.budget)
    weight, steps = heaviest_batch(tables, batch_max, weights.astype(np.int64), order, steps_max, least, best)
    return np.flatnonzero(best).astype(np.int64), int(weight), int(steps)


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
