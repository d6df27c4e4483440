"""Split a reassignment into consecutive batches, and state their gap to the shortest possible duration.

Goals, most important first:
1. No broker has more than `concurrency` partitions coming in, or going out, at a time; no disk runs over.
2. All batches together take at most 1.2 times the lower bound (batch_bound.py), or as little as found.
3. As few batches as that allows.

How. A batch lasts as long as its busiest link. Moves go longest first, of equals those of the busiest brokers first,
into the batch that they lengthen least; a batch is given a length beforehand, up to which moves cost nothing. Where
disks may run over, moves go largest first into the first batch with room. The fastest way is taken; where so few
batches take more than `NEAR_BOUND` times the lower bound, more of them are tried.

Source: longest processing time first (Graham 1969); first-fit decreasing (Johnson 1973); Kesselman & Kogan,
"Nonpreemptive scheduling of optical switches", IEEE Transactions on Communications, 2007; KIP-435.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import attrs
import numpy as np

from broker.broker_rows import broker_rows
from broker.cluster import PAD, SIZE_UNKNOWN, Int32Array, Int64Array
from broker.errors import RefusedError
from broker.ids import INT64_MAX
from broker.row_flags import count_each
from broker.units import GIB, MIB, format_seconds, format_size
from placement.planning.batch_bound import batched_bound, by_rank, link_seconds
from placement.planning.batches_kernel import fill_batches, pack_moves
from placement.planning.moves import Bound, FloatArray, Moves, Rates, freed_bytes, lower_bound
from placement.planning.reassignment import Reassignment

BATCH_COUNT_MAX: Final = 32
"""More files than this are refused unless asked for: a batch is a step that a person runs and verifies."""

MUCH_BYTES: Final = 10 * GIB
"""Bytes into or out of a broker at once that call for a throttle: minutes of a link of 1 Gbit/s."""
MUCH_PARTITIONS: Final = 100
OFFERED_RATES: Final = (50 * MIB, 100 * MIB)
OFFERED_CONCURRENCY: Final = 5
"""Moves at a time of a broker, as Cruise Control's num.concurrent.partition.movements.per.broker."""
UNLIMITED: Final = INT64_MAX >> 2
_PARTS: Final = (0.8, 0.5)
"""Shares of the lower bound that are given to batches beforehand; on random plans less or more was slower."""
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
        return self.reassignment.parts(self.batches)


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


def pacing_notes(made: Schedule, limits: Limits) -> tuple[str, ...]:
    """Return a warning for a large batch without a throttle: a suitable rate and the resulting duration.

    Much is `MUCH_BYTES` into or out of a broker at once, or where sizes are unknown `MUCH_PARTITIONS`.
    """
    plan = made.reassignment
    most = max(
        made.parts(),
        key=lambda part: lower_bound(Moves.of(part), Rates.equal(len(plan.view.brokers))).seconds,
        default=plan,
    )
    moves = Moves.of(most)
    busiest = lower_bound(moves, Rates.equal(moves.broker_count))
    if made.has_rates or busiest.seconds < (MUCH_BYTES if made.sizes_known else MUCH_PARTITIONS):
        return ()
    copied = int((moves.sizes * moves.counts).sum())
    whole, part = (f"{int(one):,}" if not made.sizes_known else format_size(one) for one in (copied, busiest.seconds))
    direction = "into" if busiest.direction == "in" else "out of"
    unit, them = ("", "that") if made.sizes_known else (" replicas", "them")
    batch = "the plan" if len(made.batches) == 1 else "a batch"
    begin = (
        f"{batch} copies {whole}{unit} at once, {part} of {them} {direction} broker "
        f"{plan.view.brokers[busiest.broker_row].id}, and no throttle is set: "
    )
    return (begin + "; ".join(_offers(made, limits)),)


def _offers(made: Schedule, limits: Limits) -> Iterator[str]:
    """Yield the ways to limit the rate of a plan, and the least time that each takes."""
    first, *_ = named = [f"{rate // MIB}MiB" for rate in OFFERED_RATES]
    times = [f" takes at least {format_seconds(made.seconds / rate)}" for rate in OFFERED_RATES]
    shown = [f"{rate}{time}" for rate, time in zip(named, times, strict=True)] if made.sizes_known else [first]
    yield f"--throttle {', '.join(shown)}"
    links = Moves.of(made.reassignment).links()
    degree = int(np.bincount(links[links >= 0]).max())
    concurrency = max(min(OFFERED_CONCURRENCY, -(-degree // 2)), -(-degree // limits.batch_count_max))
    if limits.concurrency is None and concurrency < degree:
        with suppress(ScheduleError):
            slower = schedule(made.reassignment, attrs.evolve(limits, concurrency=concurrency))
            time = format_seconds(slower.seconds / OFFERED_RATES[0])
            with_time = f" that take at least {time} at {first}" if made.sizes_known else ""
            yield f"--concurrency {concurrency} makes {len(slower.batches)} batches{with_time}"
    if not made.sizes_known:
        yield "sizes are unknown, and so are the times: --sizes gives them"


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
    degree = count_each(links, 2 * moves.broker_count)
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
    if not np.isfinite(lower_bound(moves, rates).seconds):
        rates = Rates.equal(moves.broker_count)  # Some batch never ends, whatever they are: only the limits count.
    if limits.free_bytes is None:
        links = moves.links()
        busiest = int(count_each(links, 1).max())
        concurrency = limits.concurrency or max(-(-busiest // least), 1)
        yield from _packed(moves, rates, concurrency, least, limits.batch_count_max)
        return
    count = least
    while count <= limits.batch_count_max:
        filled = _filled(plan, moves, rates, limits, count)
        if not (filled < 0).any():
            yield filled
        is_last = count == limits.batch_count_max
        count = limits.batch_count_max + 1 if is_last else min(limits.batch_count_max, max(count + 1, count * 5 // 4))


def _packed(moves: Moves, rates: Rates, concurrency: int, least: int, batch_count_max: int) -> Iterator[Int64Array]:
    """Yield batches of each move, int64[M]; only such as have room for every move. Cost: O(moves x batches) each."""
    links, seconds = moves.links(), link_seconds(moves, rates)
    moves_of = count_each(links, 2 * moves.broker_count)
    beside = np.where(links >= 0, moves_of[links], 0)
    order = np.lexsort((np.arange(moves.count), -beside.sum(axis=1), -beside.max(axis=1), -seconds.max(axis=1)))
    bound = batched_bound(moves, rates, concurrency)
    for lengths in _lengths(moves, seconds, concurrency, least, min(batch_count_max, 2 * least + 1)):
        given = lengths * (bound / max(float(lengths.sum()), np.finfo(np.float64).tiny))
        for part in _PARTS:
            batch_of = pack_moves(order, links, seconds, given * part, 2 * moves.broker_count, concurrency)
            if not (batch_of < 0).any():
                yield np.unique(batch_of, return_inverse=True)[1]


def _lengths(moves: Moves, seconds: FloatArray, concurrency: int, least: int, most: int) -> Iterator[FloatArray]:
    """Yield the lengths of up to `most` batches relative to each other, float64[most]."""
    links = moves.links()
    mine, times, rank = by_rank(links[links >= 0], seconds[links >= 0])
    groups = np.zeros((2 * moves.broker_count, most), dtype=np.float64)
    within = rank // concurrency < most
    np.add.at(groups, (mine[within], rank[within] // concurrency), times[within])
    yield groups.max(axis=0, initial=0.0)
    for count in sorted({least, min(most, least * 5 // 4 + 1)}):
        yield (np.arange(most) < count).astype(np.float64)


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


def _filled(plan: Reassignment, moves: Moves, rates: Rates, limits: Limits, batch_count: int) -> Int64Array:
    """Return the batch of each move by first-fit decreasing with the room of the disks; -1 where nothing has room."""
    assert limits.free_bytes is not None
    seconds = lower_bound(moves, rates).seconds / batch_count
    largest = moves.sizes * moves.counts
    budget = np.empty((2, moves.broker_count), dtype=np.int64)
    for side, rate in enumerate((rates.bytes_in, rates.bytes_out)):
        budget[side] = np.minimum(np.ceil(seconds * rate), UNLIMITED).astype(np.int64)
    budget = np.maximum(budget, int(largest.max(initial=0)))
    room = np.where(limits.free_bytes < 0, UNLIMITED, limits.free_bytes).astype(np.int64)
    order = np.lexsort((np.arange(moves.count), -largest))
    freed, freed_sizes = _freed(plan, moves)
    return fill_batches(
        order,
        moves.source,
        moves.targets,
        moves.sizes,
        budget,
        room,
        freed,
        freed_sizes,
        limits.concurrency or UNLIMITED,
        limits.batch_count_max,
    )


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
