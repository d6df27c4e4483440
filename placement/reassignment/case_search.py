"""Search for cases that bound the bytes of a plan: which questions to ask, and at which prices each is settled.

What it decides: a tree of cases and their prices (case_bound.py), and placements of large partitions on the way.

How. The end with the least bound is opened: its partitions, cut into parts (parts.py), are placed within the bands so
that its answers hold, which is a flow with bounds by partition. Of the partitions whose parts stand apart the largest
is asked about, at the broker that has nearest to half of its parts. Each answer is an end of its own, with the prices
of its flow or those of the end before; where no flow exists, prices along the ray that shows so.

Constraints: the search ends after a fixed number of parts placed, so that the same input gives the same tree
everywhere.

Example: partitions of 6 and 2 bytes on broker 0, broker 1 joins: with the larger one there, a price of 1 on it proves
that it can hold nothing else.

Left out: a proof that no other tree bounds more.

Source: ours; branch and bound (Land & Doig, Econometrica, 1960).
"""

from __future__ import annotations

import heapq
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.reassignment.case_bound import IMPOSSIBLE, NODES_MAX, Answers, PricedCases
from placement.reassignment.certificate import Cases, Proof, Question
from placement.reassignment.exchange import Work
from placement.reassignment.parts import Parts
from placement.reassignment.problem import Bounds, Problem

_PART_COUNT: Final = 10_000
_PARTS_PLACED_MAX: Final = 2_000_000  # All told: 200 flows, about two seconds of CPU.
_LARGE_LEAST: Final = 0.002  # Of the copied bytes; smaller partitions are not asked about.
_RAY_MAX: Final = 1 << 12
_PLACED_MAX: Final = 3


@attrs.frozen(eq=False)
class _End:
    """Hold a case: its answers, the number of its prices, its bound, and the next question, -1 where there is none.

    `now` int32[N, V] are the brokers of parts, None where they do not fit.
    """

    answers: Answers
    price: int
    bound: int
    row: int
    broker: int
    now: Int32Array | None


@attrs.frozen(eq=False)
class Searched:
    """Hold cases that prove more than prices alone, None if none were found, and places of large partitions.

    `decided` are the partitions, int64[N], and their brokers, int32[N, V], of the cases with the least bounds.
    """

    cases: Cases | None
    decided: list[tuple[Int64Array, Int32Array]]


def find_cases(question: Question, proof: Proof, parts: Parts, copied: int) -> Searched:
    """Return cases that prove more than the prices of `proof` do, up to `copied`."""
    search = _Search(question, proof, parts, copied)
    ends = [search.end((), 0)]
    first = ends[0].bound
    heap = [(ends[0].bound, 0)]
    while heap and search.left > 0 and 2 * len(ends) < NODES_MAX:
        bound, place = heap[0]
        end = ends[place]
        if bound >= copied or end.row < 0:
            break
        heapq.heappop(heap)
        for holds in (True, False):
            ends.append(search.end((*end.answers, (end.row, end.broker, holds)), end.price))
            heapq.heappush(heap, (ends[-1].bound, len(ends) - 1))
    good = [ends[place] for _, place in sorted(heap)[:_PLACED_MAX]]
    decided = [search.large(end.now) for end in good if end.now is not None]
    return Searched(search.tree(ends) if heap and heap[0][0] > first else None, decided)


class _Search:
    """Hold the state of one search: the parts of all partitions, the vectors of prices so far, and the work left."""

    def __init__(self, question: Question, proof: Proof, parts: Parts, copied: int) -> None:
        self.question, self.proof = question, proof
        self.parts = Parts.of(parts.whole, parts.sizes, parts.base, parts.cut.share, _PART_COUNT)
        self.least = int(copied * _LARGE_LEAST)
        self.left = _PARTS_PLACED_MAX
        self.known: dict[bytes, int] = {}
        self.prices: list[PricedCases] = []
        self.first = [self.number(proof.price), self.number(np.zeros_like(proof.price))]

    def number(self, price: Int64Array) -> int:
        """Return the number of a vector of prices, which is noted if it is new."""
        key = price.tobytes()
        if key not in self.known:
            self.known[key] = len(self.prices)
            self.prices.append(PricedCases(self.question, self.proof, price))
        return self.known[key]

    def end(self, answers: Answers, before: int) -> _End:
        """Return the case of these answers, with the best of its own prices and those of the case before."""
        problem, tried = self.problem(answers), [before, *self.first]
        row, broker, now = -1, -1, None
        for wider in (0, 1):  # Parts are rounded, so that a case which exists may need one more of them.
            work = self.work(problem, wider)
            unsettled = work.settle(np.full_like(problem.leader, -1), "moves")
            self.left -= int(self.parts.start[-1])
            if unsettled is None:
                solution = work.solution()
                tried.append(self.number(solution.move_price))
                now = solution.now
                row, broker = self.asked(now, answers)
                break
            tried.append(self.along_ray(answers, before, ~unsettled[work.brokers] & problem.live))
        best = max(tried, key=lambda one: self.prices[one].bound(answers))
        return _End(answers, best, self.prices[best].bound(answers), row, broker, now)

    def work(self, problem: Problem, wider: int) -> Work:
        """Return the flow of parts within the bands, made wider by some parts."""
        live, unit = problem.live, self.parts.unit
        return Work(
            problem,
            Bounds(
                low=np.where(live, np.maximum(self.proof.low // unit - wider, 0), 0),
                high=np.where(live, -(-self.proof.high // unit) + wider, 0),
                block=np.where(live, 0, -1),
                totals=np.array([problem.total], dtype=np.int64),
            ),
        )

    def problem(self, answers: Answers) -> Problem:
        """Return the problem of parts in which each partition asked about has bounds of its own."""
        cut, rows = self.parts.cut, sorted({row for row, _, _ in answers})
        topic = np.zeros(cut.kind.size, dtype=np.int32)
        low = np.zeros((len(rows) + 1, cut.group.size), dtype=np.int64)
        high = np.full_like(low, cut.kind.size)
        for number, row in enumerate(rows, 1):
            first, last = int(self.parts.start[row]), int(self.parts.start[row + 1])
            topic[first:last] = number
            high[number] = last - first
        for row, broker, holds in answers:
            number = 1 + rows.index(row)
            if holds:
                low[number, broker] = high[number, broker]
            else:
                high[number, broker] = 0
        live = cut.live
        return attrs.evolve(cut, topic=topic, topic_low=np.where(live, low, 0), topic_high=np.where(live, high, 0))

    def asked(self, now: Int32Array, answers: Answers) -> tuple[int, int]:
        """Return the partition and the broker of the next question, -1 twice if none that is large stands apart."""
        start, asked = self.parts.start, {(row, broker) for row, broker, _ in answers}
        _, apart = self.parts.apart_of(now)
        for row in apart[np.argsort(-self.parts.sizes[apart], kind="stable")].tolist():
            if self.parts.sizes[row] < self.least:
                break
            count = int(start[row + 1] - start[row])
            held = now[start[row] : start[row + 1]]
            share = np.bincount(held[held >= 0], minlength=self.proof.low.size)
            near = np.minimum(share, count - share)
            broker = int(np.argmax(near))
            if near[broker] > 0 and (row, broker) not in asked:
                return row, broker
        return -1, -1

    def large(self, now: Int32Array) -> tuple[Int64Array, Int32Array]:
        """Return the large partitions whose parts stand together, and their brokers."""
        sets, apart = self.parts.apart_of(now)
        rows = np.flatnonzero((self.parts.sizes >= self.least) & (np.diff(self.parts.start) > 0))
        rows = np.setdiff1d(rows, apart)
        return rows, sets[self.parts.start[rows]]

    def along_ray(self, answers: Answers, before: int, cheaper: np.ndarray) -> int:
        """Return prices that prove that a case is impossible, or costs too much, if the ray of its flow does."""
        best, step = before, 1
        while step <= _RAY_MAX and self.prices[best].bound(answers) < IMPOSSIBLE:
            number = self.number(self.prices[before].proof.price - step * cheaper.astype(np.int64))
            if self.prices[number].bound(answers) <= self.prices[best].bound(answers):
                break
            best, step = number, 2 * step
        return best

    def tree(self, ends: list[_End]) -> Cases:
        """Return the cases as a tree with the prices that its ends use."""
        of = {end.answers: end for end in ends}
        used: dict[int, int] = {}
        rows, brokers, waiting = [], [], [ends[0]]
        while waiting:
            end = waiting.pop()
            question = (end.row, end.broker)
            yes, no = (of.get((*end.answers, (*question, holds))) for holds in (True, False))
            if yes is None or no is None:
                rows.append(-1)
                brokers.append(used.setdefault(end.price, len(used)))
                continue
            rows.append(end.row)
            brokers.append(end.broker)
            waiting += [no, yes]
        price = np.array([self.prices[number].proof.price for number in used])
        return Cases(row=np.array(rows, dtype=np.int64), broker=np.array(brokers, dtype=np.int64), price=price)
