"""Bound the bytes that a plan copies by cases: which brokers hold the largest partitions.

What it decides: how many bytes any placement within the bands copies at least, where prices of brokers alone say too
little. They take partitions for divisible, so a partition larger than a broker's room costs them nothing but itself.

How. Every placement puts the largest partitions on some brokers that the rules allow. For each such choice any prices
give a bound (certificate.py, with these partitions where they are), so the greatest over a few vectors of prices is
one, too; and the least of these over all choices bounds every placement. The certificate holds the number of
partitions and the prices, and whoever checks it lists the choices anew.

Constraints: at most `CHOICES_MAX` choices.

Example: partitions of 6 and 2 bytes on broker 0, broker 1 joins, bands of 2 to 6 bytes. Prices alone prove that 2 bytes
move, and with the larger partition on broker 1 at least 6 do.

Left out: choices of small partitions, of which there are too many; how prices are found (case_search.py).

Source: ours; branch and bound with one level.
"""

from __future__ import annotations

import itertools
import math
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.reassignment.certificate import Proof, Question, dearest_loads, lower_bound

CHOICES_MAX: Final = 200_000
_BELOW: Final = -(1 << 61)


def least_bytes(question: Question, proof: Proof) -> int:
    """Return what any placement within the bounds costs at least, by prices and by cases where there are some."""
    plain = lower_bound(question, proof)
    if proof.cases is None or question.weights is None:
        return plain
    choices = Choices.of(question, proof.cases.count)
    return plain if choices is None else max(plain, int(choices.bounds(question, proof, proof.cases.price).min()))


@attrs.frozen(eq=False)
class Choices:
    """Hold the `rows` int64[R] of partitions, and all their brokers: `brokers` int32[C, R * V], `fresh` int64[C].

    `fresh` are the bytes of new replicas; `weight` int64[R * V] those of each column's partition.
    """

    rows: Int64Array
    brokers: Int32Array
    fresh: Int64Array
    weight: Int64Array

    @classmethod
    def of(cls, question: Question, count: int) -> Choices | None:
        """Return the choices of the `count` largest partitions; None where they are too many, or partitions too few."""
        assert question.weights is not None
        asked = np.flatnonzero(question.wanted)
        rows = asked[np.argsort(-question.weights[asked], kind="stable")][:count].astype(np.int64)
        live = int(np.count_nonzero(question.live))
        many = [math.comb(live, int(question.wanted[row])) for row in rows.tolist()]
        if not 0 < count <= rows.size or max(many) > CHOICES_MAX:
            return None
        sets = [_sets(question, row) for row in rows.tolist()]
        if not 0 < math.prod(one.shape[0] for one in sets) <= CHOICES_MAX:
            return None
        places = np.indices([one.shape[0] for one in sets]).reshape(rows.size, -1)
        brokers = np.concatenate([one[place] for one, place in zip(sets, places, strict=True)], axis=1)
        weight = np.repeat(question.weights[rows], [one.shape[1] for one in sets])
        held = np.repeat(question.rows[rows], [one.shape[1] for one in sets], axis=0)
        is_new = ~(brokers[:, :, None] == held[None, :, :]).any(axis=2)
        return cls(rows, brokers, (is_new * weight).sum(axis=1), weight)

    def bounds(self, question: Question, proof: Proof, price: Int64Array) -> Int64Array:
        """Return the bound of each choice, int64[C], the greatest that the vectors `price` int64[K, B] prove."""
        found = np.zeros(self.fresh.size, dtype=np.int64)
        for one in price:
            np.maximum(found, self.of_price(question, attrs.evolve(proof, price=one)), out=found)
        return found

    def of_price(self, question: Question, proof: Proof, choice: int | None = None) -> Int64Array:
        """Return the bound of each choice, or of one alone, by the prices of `proof`; 0 where they prove nothing."""
        chosen = slice(None) if choice is None else slice(choice, choice + 1)
        if not question.adds_up(proof):
            return np.zeros_like(self.fresh[chosen])
        rest = np.setdiff1d(np.flatnonzero(question.wanted), self.rows).astype(np.int64)
        others = question.least(proof.price, fresh=1, lead=0, rows=rest) - dearest_loads(question, proof)
        if others < _BELOW:
            return np.zeros_like(self.fresh[chosen])
        held = (proof.price[self.brokers[chosen]] * self.weight).sum(axis=1)
        return np.asarray(self.fresh[chosen] + held + min(others, -_BELOW), dtype=np.int64)


def _sets(question: Question, row: int) -> Int32Array:
    """Return the sets of brokers that may hold a partition, int32[C, F]; some that the rules forbid may be among them.

    With as many open racks as replicas, or more, each holds one at most (bound_kernel.py).
    """
    rules, held, wanted = question.rules(), question.rows[row], int(question.wanted[row])
    held = held[held >= 0]
    formerly = np.zeros(question.live.size, dtype=np.bool_)
    formerly[held] = True
    able = np.flatnonzero(question.live & (question.receives | formerly))
    sets = np.array(list(itertools.combinations(able.tolist(), wanted)), dtype=np.int32).reshape(-1, wanted)
    is_open = (rules.open_size > 0) & ~rules.closed
    is_open[question.rack[held[question.live[held]]]] = True
    is_open[question.rack[held[question.stays[held]]]] = False
    if wanted > np.count_nonzero(is_open):
        return sets
    racks = np.sort(question.rack[sets], axis=1)
    keeps = is_open[racks].all(axis=1) & (np.diff(racks, axis=1) != 0).all(axis=1)
    return np.asarray(sets[keeps], dtype=np.int32)
