"""Search for prices that bound the bytes of a plan by cases of where the largest partitions lie.

What it decides: a few vectors of prices, and of how many partitions the cases are (case_bound.py).

How. From the prices of the last change and from those without cases, that neighbour is taken, one broker's price up or
down by 1, which raises the bound of the worst choice most, until none does; then with one partition more.

Constraints: the search stops after a fixed number of rows looked at, so that the same input gives the same prices
everywhere.

Example: partitions of 6 and 2 bytes on broker 0, broker 1 joins: with the larger one there, a price of 1 on it proves
that it can hold nothing else.

Left out: a proof that no other prices bound more.

Source: ours; steepest ascent, as the bound is concave in the prices.
"""

from __future__ import annotations

import itertools
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int64Array
from placement.reassignment.case_bound import Choices
from placement.reassignment.certificate import Cases, Proof, Question, lower_bound

_PARTITIONS_MAX: Final = 3
_PRICES_MAX: Final = 64
_ROWS_LOOKED_AT_MAX: Final = 10_000_000  # About two seconds of CPU.


def find_cases(question: Question, proof: Proof, enough: int) -> Cases | None:
    """Return prices that prove more by cases than those of `proof` do, up to `enough`; None if none were found."""
    best, found = lower_bound(question, proof), None
    for count in range(1, _PARTITIONS_MAX + 1):
        choices = Choices.of(question, count)
        if best >= enough or choices is None:
            break
        price = _improved(choices, question, proof, enough)
        bound = int(choices.bounds(question, proof, price).min())
        if bound > best:
            best, found = bound, Cases(count=count, price=price)
    return found


def _improved(choices: Choices, question: Question, proof: Proof, enough: int) -> Int64Array:
    """Return prices that raise the bound of the worst choice as long as that succeeds, int64[K, B]."""
    known = [proof.price]
    found = choices.of_price(question, proof)
    left = _ROWS_LOOKED_AT_MAX
    while len(known) < _PRICES_MAX and int(found.min()) < enough and left > 0:
        worst = int(np.argmin(found))
        places = np.unique([*choices.brokers[worst], *question.rows[choices.rows].ravel()])
        near = [(one, sign) for one in places[places >= 0].tolist() for sign in (1, -1)]
        best, price = int(found[worst]), None
        for before, (place, sign) in itertools.product(known[:1] + known[1:][-1:], near):
            other = before.copy()
            other[place] += sign
            value = int(choices.of_price(question, attrs.evolve(proof, price=other), worst)[0])
            if value > best:
                best, price = value, other
        left -= 2 * len(near) * question.wanted.size
        if price is None:
            break
        known.append(price)
        np.maximum(found, choices.of_price(question, attrs.evolve(proof, price=price)), out=found)
    return np.array(known)
