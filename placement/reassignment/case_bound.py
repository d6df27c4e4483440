"""Bound the bytes that a plan copies by cases: whether a broker holds a large partition or not.

What it decides: how many bytes any placement within the bands copies at least, where prices of brokers alone say too
little. They take partitions for divisible, so a partition larger than a broker's room costs them nothing but itself.

How. The cases form a tree. Each inner node asks whether one broker holds one partition, so every placement comes to
exactly one end. An end has prices of its own; they bound what the placements that come there cost, as in
certificate.py, where the least of a partition's sets of brokers is taken over the sets that its answers allow. The
least of the ends' bounds bounds every placement. To find the least over the sets allowed, a broker that is answered
with yes is made so cheap, and one with no so dear, that another answer would show in the sum.

Constraints: at most `NODES_MAX` nodes.

Example: partitions of 6 and 2 bytes on broker 0, broker 1 joins, bands of 2 to 6 bytes. Prices alone prove that 2 bytes
move, and with the larger partition on broker 1 at least 6 do.

Left out: how questions and prices are found (case_search.py).

Source: ours; branch and bound (Land & Doig, Econometrica, 1960).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs
import numpy as np

from broker.cluster import Int64Array
from placement.reassignment.certificate import Cases, Proof, Question, bytes_of_topics, dearest_loads, lower_bound

NODES_MAX: Final = 4_000
IMPOSSIBLE: Final = 1 << 61
"""The bound of a case that no placement comes to."""

Answers: TypeAlias = tuple[tuple[int, int, bool], ...]
"""Partitions, brokers, and whether these hold them."""


def least_bytes(question: Question, proof: Proof) -> int:
    """Return what any placement within the bounds costs at least, by prices and by cases where there are some."""
    if question.weights is None:
        return lower_bound(question, proof)
    bare = attrs.evolve(proof, topics=None)
    plain = max(lower_bound(question, bare), bytes_of_topics(question, proof))
    if proof.cases is None:
        return plain
    ends = ends_of(proof.cases, question.wanted.size, question.live.size)
    if not ends:
        return plain
    bounds = [PricedCases(question, bare, one) for one in proof.cases.price]
    return max(plain, min(bounds[number].bound(answers) for answers, number in ends))


def ends_of(cases: Cases, partition_count: int, broker_count: int) -> list[tuple[Answers, int]]:
    """Return the answers that lead to each end and the number of its prices; nothing where the nodes are no tree."""
    nodes = list(zip(cases.row.tolist(), cases.broker.tolist(), strict=True))
    ends: list[tuple[Answers, int]] = []
    open_answers: list[Answers] = [()]
    if len(nodes) > NODES_MAX:
        return []
    for row, broker in nodes:
        if not open_answers:
            return []
        answers = open_answers.pop()
        if row < 0:
            if not 0 <= broker < cases.price.shape[0]:
                return []
            ends.append((answers, broker))
            continue
        if row >= partition_count or not 0 <= broker < broker_count:
            return []
        open_answers += [(*answers, (row, broker, False)), (*answers, (row, broker, True))]
    return [] if open_answers else ends


class PricedCases:
    """Bound the bytes that placements of a case copy, by one vector of prices of brokers, int64[B].

    What all partitions cost without answers is added up once.
    """

    def __init__(self, question: Question, proof: Proof, price: Int64Array) -> None:
        self.question = question
        self.proof = attrs.evolve(proof, price=price)
        self.proves = question.adds_up(self.proof)
        self.free: dict[int, int] = {}
        if self.proves:
            whole = question.least(price, fresh=1, lead=0)
            self.total = whole - dearest_loads(question, self.proof)
            self.proves = whole > -IMPOSSIBLE

    def bound(self, answers: Answers) -> int:
        """Return what placements with these answers cost at least; 0 where the prices prove nothing."""
        if not self.proves:
            return 0
        total = self.total
        for row in sorted({row for row, _, _ in answers}):
            own = self._with_answers(row, [(broker, holds) for one, broker, holds in answers if one == row])
            if own is None:
                return IMPOSSIBLE
            if row not in self.free:
                self.free[row] = self._least(row, self.proof.price)
            total += own - self.free[row]
        return total

    def _least(self, row: int, price: Int64Array) -> int:
        return self.question.least(price, fresh=1, lead=0, rows=np.array([row], dtype=np.int64))

    def _with_answers(self, row: int, answers: list[tuple[int, bool]]) -> int | None:
        """Return the least that a partition costs; None where no set of brokers has all the answers."""
        assert self.question.weights is not None
        wanted, size = int(self.question.wanted[row]), int(self.question.weights[row])
        if wanted == 0 or size == 0:
            return 0
        most = wanted * (int(np.abs(self.proof.price).max(initial=0)) + 1)
        far, price = 2 * most + 1, self.proof.price.copy()
        for broker, holds in answers:
            price[broker] += -far if holds else far
        if not self.question.adds_up(attrs.evolve(self.proof, price=price)):
            return self._least(row, self.proof.price)  # Without the answers the least is no more than with them.
        held = sum(holds for _, holds in answers)
        found = self._least(row, price) + far * held * size
        return None if found > most * size else found
