"""Cut a reassignment into batches that run one after the other, and say how far from the shortest time they are.

What it decides: the batch of each partition.

Goals, most important first:
1. No broker has more than `concurrency` partitions coming in, or going out, at a time; no disk runs over.
2. All batches together take at most 1.2 times the lower bound (placement/reassignment/batch_bound.py), or as little as
   found.
3. As few batches as that allows.

Constraints: a partition is in one batch only. Rows that copy nothing (new orders, replicas that only go) are in the
first batch: they complete at once. What a batch frees can be used by the next one, not by itself.

How. A batch lasts as long as its busiest link. If every partition gains one replica, batches are the colours of a
bipartite graph, which is exact in their number: ceil(d / concurrency) for d moves at the busiest link. With a
concurrency, moves are packed longest first into the batch that they lengthen least (placement/reassignment/packing.py).
Otherwise, and with disks that may run over, moves go largest first into the first batch with
room, where the room of a link is its bytes / number of batches; what then fits nowhere goes where it adds least. The
fastest is taken; beyond `COLOURED_MAX` moves colouring takes seconds, and serves only where the other ways find
nothing. Where so few batches take more than `NEAR_BOUND` times the lower bound, more of them are tried.

Example: 4 equal moves from broker 1 to broker 2 with concurrency 2: two batches of two, at the lower bound.

Left out: rates that change while a batch runs; deletion of replicas, which Kafka begins a minute after completion.
Where partitions gain two replicas, one at a time, batches are matchings of a hypergraph, which are packed, not proven.

Source: first-fit decreasing (Johnson 1973); Koenig 1916. Batches in Kafka itself were proposed in KIP-435.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np

from broker.broker_rows import broker_rows
from broker.cluster import PAD, SIZE_UNKNOWN, Int32Array, Int64Array
from broker.errors import RefusedError
from broker.ids import INT64_MAX
from placement.reassignment.batch_bound import batched_bound
from placement.reassignment.batches_kernel import colour_moves, fill_batches
from placement.reassignment.moves import Bound, FloatArray, Moves, Rates, lower_bound
from placement.reassignment.packing import packings
from placement.reassignment.peak import freed_bytes
from placement.reassignment.reassignment import Reassignment

BATCH_COUNT_MAX: Final = 32
"""More files than this are refused unless asked for: a batch is a step that a person runs and verifies."""

UNLIMITED: Final = INT64_MAX >> 2
COLOURED_MAX: Final = 100_000

NEAR_BOUND: Final = 1.2
"""More files are not worth their while once all batches together take so many times the lower bound."""


@attrs.frozen(kw_only=True, eq=False)
class Limits:
    """Limit a schedule: partitions at a time on a link of a broker, bytes a second, and free bytes of disks.

    `free_bytes` int64[B] is -1 where not known. Without `rates` a throttle is equal everywhere, and times are in bytes.
    `batch_count` asks for up to so many batches, for smaller steps; there are never more than `batch_count_max`.
    """

    concurrency: int | None = None
    rates: Rates | None = None
    free_bytes: Int64Array | None = None
    batch_count: int = 1
    batch_count_max: int = BATCH_COUNT_MAX


@attrs.frozen(kw_only=True, eq=False)
class Schedule:
    """Hold the batches of a reassignment: places of its rows, and seconds (bytes of one link without rates).

    `batch_seconds` float64[batches] is the time of each batch, `bound` the least time of any schedule, and
    `batched_bound_seconds`, no less, that of any batches within the concurrency.
    """

    reassignment: Reassignment
    batches: tuple[Int64Array, ...]
    batch_seconds: FloatArray
    bound: Bound
    batched_bound_seconds: float
    has_rates: bool
    sizes_known: bool

    @property
    def seconds(self) -> float:
        """Return the time of all batches, one after the other."""
        return float(self.batch_seconds.sum())

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what to know of batches that take more than `NEAR_BOUND` times the lower bound."""
        least = self.batched_bound_seconds
        if not self.sizes_known or not np.isfinite(least) or self.seconds <= NEAR_BOUND * least:
            return ()
        return (
            f"the batches take {self.seconds / least:.2f} times the least time of any batches within the limits, as "
            "far as it is known; faster ones may exist",
        )

    def parts(self) -> tuple[Reassignment, ...]:
        """Return the reassignment of each batch over the same view, rows in the order of the view."""
        return tuple(self.reassignment.take(batch[np.argsort(self.reassignment.rows[batch])]) for batch in self.batches)


class ScheduleError(RefusedError):
    """No schedule keeps the limits; the message names the limit, the broker and what would do."""


def schedule(plan: Reassignment, limits: Limits | None = None) -> Schedule:
    """Return the batches of a plan within `limits`; raise ScheduleError if there are none.

    Cost: about a second for a million partitions in 32 batches.
    """
    wanted = Limits() if limits is None else limits
    moves = Moves.of(plan)
    rates = Rates.equal(moves.broker_count) if wanted.rates is None else wanted.rates
    bound = lower_bound(moves, rates)
    batch_of = _batches(plan, moves, rates, wanted)
    batch_count = int(batch_of.max(initial=0)) + 1 if plan.count else 0
    all_rows = np.zeros(plan.count, dtype=np.int64)
    all_rows[moves.places] = batch_of
    return Schedule(
        reassignment=plan,
        batches=tuple(np.flatnonzero(all_rows == batch) for batch in range(batch_count)),
        batch_seconds=batch_seconds(moves, rates, batch_of, batch_count),
        bound=bound,
        batched_bound_seconds=batched_bound(moves, rates, wanted.concurrency),
        has_rates=wanted.rates is not None,
        sizes_known=moves.sizes_known,
    )


def batch_seconds(moves: Moves, rates: Rates, batch_of: Int64Array, batch_count: int) -> FloatArray:
    """Return how long each batch takes, float64[batches]: as long as its busiest link."""
    times = np.zeros(batch_count, dtype=np.float64)
    for batch in range(batch_count):
        part = _chosen(moves, np.flatnonzero(batch_of == batch))
        times[batch] = lower_bound(part, rates).seconds
    return times


def _batches(plan: Reassignment, moves: Moves, rates: Rates, limits: Limits) -> Int64Array:
    """Return the batch of each move, int64[M]."""
    links = moves.links()
    degree = np.bincount(links[links >= 0], minlength=2 * moves.broker_count)
    least = _least_batches(plan, degree, limits)
    near = NEAR_BOUND * batched_bound(moves, rates, limits.concurrency)
    best: Int64Array | None = None
    best_seconds = np.inf
    for batch_of in _candidates(plan, moves, rates, limits, least):
        total = batch_seconds(moves, rates, batch_of, int(batch_of.max(initial=0)) + 1).sum()
        if best is None or total < best_seconds:
            best, best_seconds = batch_of, total
        if total <= near:
            break
    if best is None:
        raise _does_not_fit(plan, moves, limits)
    return best


def _candidates(plan: Reassignment, moves: Moves, rates: Rates, limits: Limits, least: int) -> Iterator[Int64Array]:
    """Yield batches that keep the limits, in fewer files first."""
    is_coloured = int(moves.counts.max(initial=1)) == 1 and limits.free_bytes is None and moves.count > 0
    if is_coloured and moves.count <= COLOURED_MAX:
        yield _coloured(moves, least)
    has_any, count = False, least
    if limits.concurrency is not None and limits.free_bytes is None:
        for packed in packings(moves, rates, limits.concurrency, least, limits.batch_count_max):
            has_any = True
            yield packed
    while count <= limits.batch_count_max:
        filled = _filled(plan, moves, rates, limits, count)
        if not (filled < 0).any():
            has_any = True
            yield filled
        is_last = count == limits.batch_count_max
        count = limits.batch_count_max + 1 if is_last else min(limits.batch_count_max, max(count + 1, count * 5 // 4))
    if is_coloured and not has_any:
        yield _coloured(moves, least)


def _least_batches(plan: Reassignment, degree: Int64Array, limits: Limits) -> int:
    """Return the number of batches to begin with; raise ScheduleError if that is more than may be."""
    least, busiest = limits.batch_count, int(degree.argmax()) if degree.size else 0
    if limits.concurrency is not None and degree.size:
        least = max(least, -(-int(degree.max()) // limits.concurrency))
    if least <= limits.batch_count_max:
        return least
    if limits.concurrency is None:
        raise ScheduleError(f"{least} batches are asked for; allowed are {limits.batch_count_max}")
    brokers = plan.view.brokers
    direction = "into" if busiest < len(brokers) else "out of"
    needed = -(-int(degree.max()) // limits.batch_count_max)
    raise ScheduleError(
        f"{int(degree.max())} partitions move {direction} broker {brokers[busiest % len(brokers)].id}; with a "
        f"concurrency of {limits.concurrency} that takes {least} batches, and {limits.batch_count_max} are allowed; a "
        f"concurrency of {needed}, or {least} batches, would do"
    )


def _coloured(moves: Moves, batch_count: int) -> Int64Array:
    """Return the batch of each move by colouring; every partition gains one replica."""
    target = moves.targets.max(axis=1, initial=PAD)
    left, left_count = _split(moves.source, moves.sizes, batch_count)
    right, right_count = _split(target, moves.sizes, batch_count)
    order = np.lexsort((np.arange(moves.count), -moves.sizes))
    colours = np.empty(moves.count, dtype=np.int64)
    colours[order] = colour_moves(left[order], right[order], left_count, right_count, batch_count)
    return colours


def _split(brokers: Int32Array, sizes: Int64Array, batch_count: int) -> tuple[Int64Array, int]:
    """Return each move's group: the moves of one broker, largest first, in groups of `batch_count`; and how many."""
    order = np.lexsort((np.arange(brokers.size), -sizes, brokers))
    mine = brokers[order]
    first = np.searchsorted(mine, mine)
    within = (np.arange(brokers.size) - first) // batch_count
    is_new = np.ones(brokers.size, dtype=np.bool_)
    is_new[1:] = (mine[1:] != mine[:-1]) | (within[1:] != within[:-1])
    groups = np.empty(brokers.size, dtype=np.int64)
    groups[order] = np.cumsum(is_new) - 1
    return groups, int(np.count_nonzero(is_new))


def _filled(plan: Reassignment, moves: Moves, rates: Rates, limits: Limits, batch_count: int) -> Int64Array:
    """Return the batch of each move by first-fit decreasing; -1 where nothing has room."""
    concurrency = limits.concurrency or UNLIMITED
    seconds = lower_bound(moves, rates).seconds / batch_count
    largest = moves.sizes * moves.counts
    budget = np.empty((2, moves.broker_count), dtype=np.int64)
    for side, rate in enumerate((rates.bytes_in, rates.bytes_out)):
        budget[side] = np.minimum(np.ceil(seconds * rate), UNLIMITED).astype(np.int64)
    room = np.full(moves.broker_count, UNLIMITED, dtype=np.int64)
    is_tight = limits.free_bytes is not None
    if limits.free_bytes is not None:
        room = np.where(limits.free_bytes < 0, UNLIMITED, limits.free_bytes).astype(np.int64)
        budget = np.maximum(budget, int(largest.max(initial=0)))
    order = np.lexsort((np.arange(moves.count), -largest))
    freed, freed_sizes = _freed(plan, moves)
    most = limits.batch_count_max if is_tight else batch_count
    batch_of = fill_batches(
        order, moves.source, moves.targets, moves.sizes, budget, room, freed, freed_sizes, concurrency, most
    )
    return batch_of if is_tight else _placed_rest(moves, rates, batch_of, order, batch_count, concurrency)


def _placed_rest(
    moves: Moves, rates: Rates, batch_of: Int64Array, order: Int64Array, batch_count: int, concurrency: int
) -> Int64Array:
    """Return the batches with the moves that fit no budget put where they lengthen the batch least."""
    links = moves.links()
    per_second = np.concatenate([rates.bytes_in, rates.bytes_out])
    load = np.zeros((batch_count, 2 * moves.broker_count), dtype=np.float64)
    count = np.zeros((batch_count, 2 * moves.broker_count), dtype=np.int64)
    weight = np.where(np.arange(links.shape[1]) == links.shape[1] - 1, moves.counts[:, None], 1) * moves.sizes[:, None]
    placed = batch_of >= 0
    held = (links >= 0) & placed[:, None]
    at = np.broadcast_to(batch_of[:, None], links.shape)[held], links[held]
    np.add.at(load, at, weight[held])
    np.add.at(count, at, 1)
    length = (load / per_second).max(axis=1, initial=0.0)
    for move in order[~placed[order]].tolist():
        mine = links[move][links[move] >= 0]
        bytes_of = weight[move][links[move] >= 0]
        then = np.maximum(length, ((load[:, mine] + bytes_of) / per_second[mine]).max(axis=1))
        growth = np.where((count[:, mine] < concurrency).all(axis=1), then - length, np.inf)
        batch = int(np.argmin(growth))
        if growth[batch] == np.inf:
            continue
        batch_of[move] = batch
        load[batch, mine] += bytes_of
        count[batch, mine] += 1
        length[batch] = then[batch]
    return batch_of


def _freed(plan: Reassignment, moves: Moves) -> tuple[Int32Array, Int64Array]:
    """Return the brokers that lose a replica of each move, int32[M, V], and its bytes."""
    removed = plan.removed[moves.places]
    rows = broker_rows(plan.view.broker_ids, np.where(removed, plan.current[moves.places], PAD)).astype(np.int32)
    known = plan.view.partitions.replica_size_bytes
    sizes = np.broadcast_to(moves.sizes[:, None], rows.shape)
    if known is not None:
        mine = known[plan.rows[moves.places]]
        sizes = np.where(mine == SIZE_UNKNOWN, sizes, mine)
    return rows, np.ascontiguousarray(sizes)


def _chosen(moves: Moves, places: Int64Array) -> Moves:
    return attrs.evolve(
        moves,
        places=moves.places[places],
        source=moves.source[places],
        targets=moves.targets[places],
        sizes=moves.sizes[places],
        counts=moves.counts[places],
    )


def _does_not_fit(plan: Reassignment, moves: Moves, limits: Limits) -> ScheduleError:
    if limits.free_bytes is None:
        return ScheduleError(
            f"no {limits.batch_count_max} batches keep a concurrency of {limits.concurrency}; a larger one, or more "
            "batches, would do"
        )
    known, coming = limits.free_bytes >= 0, moves.bytes_in()
    growth = np.where(known, coming - freed_bytes(plan) - limits.free_bytes, -1)
    row = int(growth.argmax())
    if growth[row] > 0:
        return ScheduleError(
            f"broker {plan.view.brokers[row].id} has {int(limits.free_bytes[row])} bytes free and holds "
            f"{int(growth[row] + limits.free_bytes[row])} more after the plan; {int(growth[row])} more bytes of disk, "
            "or a plan that moves less to it, would do"
        )
    row = int(np.where(known, coming - limits.free_bytes, -1).argmax())
    return ScheduleError(
        f"no order of the moves was found that the disks have room for in {limits.batch_count_max} batches: broker "
        f"{plan.view.brokers[row].id} has {int(limits.free_bytes[row])} bytes free and {int(coming[row])} come in; "
        "more free disk there, or more batches, would do"
    )
