"""Solve a goal that makes bytes even within a tolerance, and refuse what cannot be, or what was not found.

What it decides: the band of each broker, the placement, and the proof that goes with it.

Constraints: what is certainly impossible is refused with the reason: a partition larger than what its brokers may hold,
or a band in which no sum of whole partitions lies. Where nothing certain is known but no placement was found, the
refusal says so, with the tolerance that the best one found needs.

Example: sizes 5 and 3 on two brokers, tolerance 1 %: no partition has the 3.96 to 4.04 bytes that each should hold.

Left out: a search that proves that no placement exists.

Source: ours; least_band.py, byte_band.py.
"""

from __future__ import annotations

import math
from typing import Final

import attrs
import numpy as np

from broker.cluster import ClusterView, Int32Array, Int64Array
from broker.units import format_size
from broker.wording import counted
from placement.reassignment.byte_band import MILLIONTHS, Band, are_ordered, band_of, block_totals
from placement.reassignment.case_bound import least_bytes
from placement.reassignment.case_search import find_cases
from placement.reassignment.certificate import GAP_MAX, Proof, Question, TopicProof, first_without_place, lower_bound
from placement.reassignment.check_input import byte_question, bytes_of
from placement.reassignment.goal import Goal, PlanRefusedError, copy_sizes, shares
from placement.reassignment.least_band import place_decided, solve_band
from placement.reassignment.parts import Parts
from placement.reassignment.problem import InfeasibleError, Problem
from placement.reassignment.topic_bands import spread_evenly
from placement.reassignment.whole_partitions import Found

_BYTES_MAX: Final = 1 << 60  # Sums of all replicas' bytes: an exbibyte.
_SIZE_MAX: Final = 1 << 52  # A partition's bytes; a float64 still holds them exactly.


def solve_banded(problem: Problem, view: ClusterView, goal: Goal) -> tuple[Int32Array, Proof]:
    """Return a placement with the bytes of every broker in its band, int32[P, V], and the proof of its bound.

    `view` has the added brokers. Raises PlanRefusedError where there is none, or none is found, and InfeasibleError
    where a partition has no place.
    """
    question, share = byte_question(view, goal), shares(view, goal)
    sizes = copy_sizes(view)
    _check_sums(view, question, sizes)
    if first_without_place(question) >= 0:
        raise InfeasibleError("a partition has no place")
    plain = attrs.evolve(problem, topic=np.zeros_like(problem.topic), topic_low=None, topic_high=None)
    parts = Parts.of(plain, np.where(problem.kind >= 0, sizes, 0), question.base, share if goal.capacity else None)
    block, totals = _ordered_blocks(question, parts.blocks(), share)
    before = bytes_of(problem.before, np.where(problem.kind >= 0, sizes, 0), share.size) + question.base
    band = band_of(
        question,
        block,
        totals,
        shares=share,
        tolerance=goal.tolerance_millionths,
        before=None if goal.is_even else before,
    )
    _check_band(view, goal, question, band)
    free = Proof(
        low=band.low,
        high=band.high,
        even_low=band.even_low,
        even_high=band.even_high,
        block=block,
        totals=totals,
        price=np.zeros_like(band.low),
        weight=1,
        is_even=goal.is_even,
    )

    def least_at(price: Int64Array) -> int:
        return lower_bound(question, attrs.evolve(free, price=price))

    found = solve_band(parts, band.low, band.high, least_at)
    if not goal.per_topic:
        _check_found(view, goal, band, found)
    proof = attrs.evolve(free, price=found.price)
    # Parts are rounded: where next to nothing has to move, prices of nothing may prove more.
    best = max(proof, free, key=lambda one: lower_bound(question, one))
    if lower_bound(question, best) < found.copied * (1 - GAP_MAX):
        searched = find_cases(question, best, parts, found.copied)
        best = attrs.evolve(best, cases=searched.cases)
        found = place_decided(parts, found, band.low, band.high, searched.decided)
    if problem.topic_low is not None and problem.topic_high is not None:
        least = least_bytes(question, best)
        found, price = spread_evenly(attrs.evolve(parts, whole=problem), found, band.low, band.high, least)
        best = attrs.evolve(best, topics=TopicProof(low=problem.topic_low, high=problem.topic_high, price=price))
        _check_found(view, goal, band, found)
    return found.now, best


def _check_sums(view: ClusterView, question: Question, sizes: Int64Array) -> None:
    largest = int(sizes.max(initial=0))
    if largest >= _SIZE_MAX:
        raise PlanRefusedError(
            f"a partition of {largest:,} bytes is too large to plan by bytes; allowed are {_SIZE_MAX - 1:,}"
        )
    held = np.count_nonzero(view.partitions.replicas >= 0, axis=1) + question.wanted
    total = float((held.astype(np.float64) * sizes).sum())
    if total >= _BYTES_MAX:
        raise PlanRefusedError(
            f"{view.name} has {total:.3g} bytes, too many to plan by bytes; allowed are {_BYTES_MAX:,}"
        )


def _ordered_blocks(question: Question, block: Int64Array, share: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the blocks with their exact bytes; blocks that parts put in the wrong order become one."""
    while True:
        count = int(block.max(initial=-1)) + 1
        totals = block_totals(question, block, count)
        whole = np.zeros(count, dtype=np.int64)
        np.add.at(whole, block[block >= 0], share[block >= 0])
        wrong = [n for n in range(count - 1) if not are_ordered(totals[n : n + 2], whole[n : n + 2])]
        if not wrong:
            return block, totals
        block = np.where(block > wrong[0], block - 1, block)


def _check_band(view: ClusterView, goal: Goal, question: Question, band: Band) -> None:
    """Refuse a partition that too few brokers may hold, and a band without a sum of whole partitions."""
    assert question.weights is not None
    room = np.sort(np.where(question.live, band.high - question.base, -1))[::-1]
    rows = np.flatnonzero(question.wanted > 0)
    if not rows.size:
        return
    order = rows[np.argsort(-question.weights[rows], kind="stable")]
    for row in order[: int(np.count_nonzero(question.weights[order] > room[-1]))].tolist():
        size, wanted = int(question.weights[row]), int(question.wanted[row])
        if int(np.count_nonzero(room >= size)) >= wanted:
            continue
        table = view.partitions
        name = f"{view.topics[int(table.topic_index[row])].name}-{int(table.partition_ids[row])}"
        most = int(room[wanted - 1])
        raise PlanRefusedError(
            f"{name} has {format_size(size)}, more than any broker may hold: at most {format_size(max(most, 0))} "
            f"of it fit within {_percent(goal)} of the mean on {counted(wanted, 'broker')}; exclude its topic, or "
            "choose a wider --tolerance"
        )
    empty = question.live & (band.low > band.high)
    if empty.any():
        place = int(np.argmax(empty))
        raise PlanRefusedError(
            f"no sum of whole partitions lies within {_percent(goal)} of the mean of broker "
            f"{view.brokers[place].id}, {_between(int(band.even_low[place]), int(band.even_high[place]))}; choose a "
            "wider --tolerance"
        )


def _check_found(view: ClusterView, goal: Goal, band: Band, found: Found) -> None:
    live = band.high > 0
    outside = (found.loads < band.low) | (found.loads > band.high)
    if not outside.any():
        return
    middle = (band.even_low + band.even_high) / 2
    off = np.where(live, np.abs(found.loads - middle), 0)
    place = int(np.argmax(np.where(outside, off / np.maximum(middle, 1), -1)))
    percent = math.ceil(1000 * off[place] / max(middle[place], 1)) / 10
    raise PlanRefusedError(
        f"no placement was found with the bytes of every broker within {_percent(goal)} of its mean; in the best one "
        f"broker {view.brokers[place].id} is {percent:g} % off, so try --tolerance {math.ceil(percent)}, or leave it "
        "out: then counts become even"
    )


def _percent(goal: Goal) -> str:
    return f"{100 * goal.tolerance_millionths / MILLIONTHS:g} %"


def _between(first: int, second: int) -> str:
    """Return two sizes as text, the smaller first; one where both round to the same text."""
    low, high = (format_size(size) for size in sorted((first, second)))
    return low if low == high else f"{low} to {high}"
