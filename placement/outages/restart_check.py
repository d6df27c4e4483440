"""Check a schedule of restarts and its lower bound, from the constraints alone.

What it decides: whether every broker restarts once, no batch breaks a constraint, and no schedule has fewer batches
than the certificate says. Nothing here knows how the schedule was found.

How: a certificate is a weight for each broker. If no batch that the constraints allow weighs more than `cap`, then

    batches >= ceil( sum of the weights / cap )

`heaviest_batch` finds the heaviest batch exactly, by trying brokers in order of weight; a branch is cut where the
brokers that are left, at most one from each set of which no two may restart together, cannot outweigh the best. A
clique (brokers of which no two may restart together) is the case of weight 1 each and cap 1.

Where weights prove too little, `fill_within` searches depth first for a schedule of one batch fewer: it takes the
broker for which the fewest batches are open, tries each of them, and one new batch, as unused batches are alike. If it
ends without one, there is none.

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

Source: weak duality of fractional set covering; Brélaz's DSATUR, here with hyperedges and a largest batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.outages.restart_budget import Limits

STEPS_MAX: Final = 200_000_000  # About a second.
_FAULTS_MAX: Final = 10
FOUND: Final = 1
NONE: Final = 0
CUT_OFF: Final = -1
Proof: TypeAlias = Literal["weights", "search"]
ByteArray: TypeAlias = NDArray[np.uint8]


@attrs.frozen
class Checked:
    """Hold the faults of a schedule, and the number of batches that every schedule needs, as far as confirmed.

    `by` says what confirmed it: the weights, or a search for one batch fewer that found none.
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
    by_search: int = 0,
    steps_max: int = STEPS_MAX,
) -> Checked:
    """Return the faults of `batches` (places in `limits.brokers`), and the lower bound that is confirmed.

    The bound is what `weights` prove; or `by_search`, if that is more and no schedule has one batch fewer.
    """
    faults = tuple(_faults(limits, batches))[:_FAULTS_MAX]
    bound = lower_bound(limits, weights, steps_max=steps_max)
    if by_search > bound and within(limits, conflicts_of(limits), by_search - 1, steps_max)[0] == NONE:
        return Checked(faults, by_search, "search")
    return Checked(faults, bound, "weights")


def within(limits: Limits, conflicts: Conflicts, batch_count: int, steps_max: int) -> tuple[int, Int32Array]:
    """Return FOUND, NONE or CUT_OFF, and for FOUND the batch of each broker in a schedule of `batch_count` or fewer."""
    batch_of = np.full(limits.brokers.size, -1, dtype=np.int32)
    if batch_count < 1:
        return (NONE if limits.brokers.size else FOUND), batch_of
    tables = (conflicts.clash, conflicts.hyperedge_of, conflicts.budget)
    return int(fill_within(tables, limits.batch_max, batch_count, steps_max, batch_of)), batch_of


def lower_bound(limits: Limits, weights: Int64Array, *, steps_max: int = STEPS_MAX) -> int:
    """Return the number of batches that `weights` prove every schedule to need; 0 if it cannot be confirmed."""
    if not limits.brokers.size or weights.shape != limits.brokers.shape or int(weights.min()) < 0:
        return 0
    total = int(weights.sum())
    cap, steps = heaviest(conflicts_of(limits), limits.batch_max, weights, steps_max)[1:]
    return -(-total // cap) if steps <= steps_max and cap else 0


def heaviest(conflicts: Conflicts, batch_max: int, weights: Int64Array, steps_max: int) -> tuple[Int64Array, int, int]:
    """Return the heaviest batch found, its weight, and the comparisons made: above `steps_max` if cut off."""
    order = np.lexsort([np.arange(weights.size), -weights]).astype(np.int64)
    order = order[weights[order] > 0]
    best = np.zeros(weights.size, dtype=np.uint8)
    tables = (conflicts.clash, conflicts.hyperedge_of, conflicts.budget)
    weight, steps = heaviest_batch(tables, batch_max, weights.astype(np.int64), order, steps_max, best)
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
        held = inside[limits.members].sum(axis=1)  # Padding, -1, reads the last entry.
        for row in np.flatnonzero(held > limits.budget).tolist():
            names = ", ".join(str(each) for each in limits.members[row].tolist() if each >= 0)
            yield (
                f"batch {number} holds {held[row]} of the brokers {names}, of which {limits.budget[row]} may restart "
                "at once"
            )


def fits(edges: Int32Array, held: Int32Array, budget: Int32Array) -> bool:
    """Return whether a batch that holds `held` of each hyperedge takes a broker of the hyperedges `edges`."""
    full = 0
    for edge in edges:
        full += edge >= 0 and held[edge] >= budget[edge]
    return full == 0


def hold(edges: Int32Array, held: Int32Array, change: int) -> None:
    """Add a broker of the hyperedges `edges` to what a batch holds, or take it away."""
    for edge in edges:
        if edge >= 0:
            held[edge] += change


def cover(
    clash: ByteArray, weights: Int64Array, left: Int32Array, left_count: int, cliques: Int32Array, bound: Int64Array
) -> int:
    """Fill for each candidate how much it and all after it can add at most; return the comparisons made.

    Candidates are covered with cliques, the lightest first: a batch has one broker of each clique at most.
    """
    sizes = np.zeros(left_count, np.int64)
    tops = np.zeros(left_count, np.int64)
    count = steps = 0
    bound[left_count] = 0
    for place in range(left_count - 1, -1, -1):
        broker = left[place]
        into = 0
        while into < count:
            inside = True
            for member in range(sizes[into]):
                steps += 1
                if not clash[broker, cliques[into, member]]:
                    inside = False
                    break
            if inside:
                break
            into += 1
        count = max(count, into + 1)
        cliques[into, sizes[into]] = broker
        sizes[into] += 1
        bound[place] = bound[place + 1] + weights[broker] - tops[into]
        tops[into] = weights[broker]
    return steps


@compiled_with(fits, hold, cover)
def heaviest_batch(
    tables: tuple[ByteArray, Int32Array, Int32Array],
    batch_max: int,
    weights: Int64Array,
    order: Int64Array,
    steps_max: int,
    best: ByteArray,
) -> tuple[int, int]:
    """Fill uint8[N] with the heaviest batch; return its weight, and the comparisons, above `steps_max` if cut off."""
    clash, hyperedge_of, budget = tables
    count = order.shape[0]
    deepest = min(batch_max, count)
    left = np.zeros((deepest + 1, count), np.int32)
    left_count = np.zeros(deepest + 1, np.int64)
    bound = np.zeros((deepest + 1, count + 1), np.int64)
    at = np.zeros(deepest + 1, np.int64)
    chosen = np.zeros(deepest + 1, np.int64)
    held = np.zeros(budget.shape[0], np.int32)
    cliques = np.zeros((count, count), np.int32)
    left[0] = order
    left_count[0] = count
    depth, weight, most, steps, fresh = 0, np.int64(0), np.int64(0), 0, True
    while depth >= 0 and steps <= steps_max:
        if fresh:
            steps += cover(clash, weights, left[depth], left_count[depth], cliques, bound[depth])
            at[depth] = 0
        place = at[depth]
        fresh = False
        if depth < deepest and place < left_count[depth]:
            broker = left[depth, place]
            fresh = weight + min(bound[depth, place], (deepest - depth) * weights[broker]) > most
        if not fresh:  # Nothing better is left here.
            depth -= 1
            if depth >= 0:
                weight -= weights[chosen[depth]]
                hold(hyperedge_of[chosen[depth]], held, -1)
            continue
        steps += 1 + left_count[depth] - place
        at[depth] += 1
        chosen[depth] = broker
        weight += weights[broker]
        hold(hyperedge_of[broker], held, 1)
        if weight > most:
            most = weight
            best[:] = 0
            for member in range(depth + 1):
                best[chosen[member]] = 1
        kept = 0
        for other_place in range(place + 1, left_count[depth]):
            other = left[depth, other_place]
            if not clash[broker, other] and fits(hyperedge_of[other], held, budget):
                left[depth + 1, kept] = other
                kept += 1
        depth += 1
        left_count[depth] = kept
    return int(most), steps


def move(broker: int, clash: ByteArray, batch: Int64Array, barred: Int32Array, change: int) -> None:
    """Put a broker into a batch or take it out: its size, batch[0], and whom it bars."""
    batch[0] += change
    for other in range(clash.shape[0]):
        barred[other] += change * clash[broker, other]


@compiled_with(fits, hold, move)
def fill_within(
    tables: tuple[ByteArray, Int32Array, Int32Array],
    batch_max: int,
    batch_count: int,
    steps_max: int,
    batch_of: Int32Array,
) -> int:
    """Fill int32[N] with a schedule of `batch_count` batches or fewer; return 1 if found, 0 if there is none, or -1."""
    clash, hyperedge_of, budget = tables
    count = clash.shape[0]
    barred = np.zeros((batch_count, count), np.int32)
    held = np.zeros((batch_count, budget.shape[0]), np.int32)
    size = np.zeros((batch_count, 1), np.int64)
    degree = np.zeros(count, np.int64)
    for broker in range(count):
        degree[broker] = clash[broker].sum() + (hyperedge_of[broker] >= 0).sum()
    batch_of[:] = -1
    chosen = np.zeros(count + 1, np.int64)
    tried = np.full(count + 1, -1, np.int64)
    used = np.zeros(count + 2, np.int64)
    depth, steps, fresh = 0, 0, True
    while 0 <= depth < count and steps <= steps_max:
        if fresh:
            # The broker with the fewest open batches, of equals the one with the most constraints.
            best, best_open = -1, np.int64(0)
            for broker in range(count):
                if batch_of[broker] >= 0:
                    continue
                is_open = np.int64(0)
                for batch in range(used[depth]):
                    if barred[batch, broker] == 0 and size[batch, 0] < batch_max:
                        is_open += fits(hyperedge_of[broker], held[batch], budget)
                steps += 1 + used[depth]
                if best < 0 or is_open < best_open or (is_open == best_open and degree[broker] > degree[best]):
                    best, best_open = broker, is_open
            chosen[depth] = best
            tried[depth] = -1
        broker, batch = chosen[depth], tried[depth]
        if batch >= 0:
            batch_of[broker] = -1
            move(broker, clash, size[batch], barred[batch], -1)
            hold(hyperedge_of[broker], held[batch], -1)
        batch += 1
        last = min(used[depth] + 1, batch_count)
        while batch < last and not (
            barred[batch, broker] == 0
            and size[batch, 0] < batch_max
            and fits(hyperedge_of[broker], held[batch], budget)
        ):
            batch += 1
        steps += count
        fresh = batch < last
        if not fresh:
            depth -= 1
            continue
        tried[depth] = batch
        batch_of[broker] = batch
        move(broker, clash, size[batch], barred[batch], 1)
        hold(hyperedge_of[broker], held[batch], 1)
        used[depth + 1] = max(used[depth], batch + 1)
        depth += 1
    return 1 if depth == count else 0 if depth < 0 else -1
