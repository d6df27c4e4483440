"""Find cases in which prices prove that every schedule has more batches than asked for.

What it decides: a proof for `restart_cases.cases_prove` where the prices of the best fractional schedule prove too
little: in it two brokers are half together and half apart, and in both cases it takes more batches.

Constraints: no chance and no clock: work is counted and bounded, and numbers drawn from a fixed seed.

How: a case whose prices prove enough is done. Another one is split by the two brokers that are nearest to half
together in its best fractional schedule; of equals those that leave the most clashes. Batches found in one case are
columns in the next if they fit. It ends without a proof when the work is done.

Source: Mehrotra & Trick, "A column generation approach for graph coloring", INFORMS Journal on Computing, 1996.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from placement.outages.restart_cases import CASES_MAX, Case, Split, contracted
from placement.outages.restart_check import Conflicts
from placement.outages.restart_columns import Program, Work
from placement.outages.restart_prices import PriceSearch
from placement.outages.restart_search_kernel import ByteArray

_HALF_LEAST: Final = 1e-4


@attrs.frozen(kw_only=True, eq=False)
class _Open:
    """Hold a case that is not proven yet, and batches to begin with, as brokers."""

    splits: tuple[Split, ...]
    batches: tuple[frozenset[int], ...]


def proven_cases(clash: ByteArray, batches: Sequence[Sequence[int]], batch_count: int, work: Work) -> tuple[Case, ...]:
    """Return cases that prove that every schedule has `batch_count` batches or more; none if none were found.

    `batches` are what the search begins with; only pairs of brokers in `clash` uint8[N, N] may forbid a batch.
    """
    stack = [_Open(splits=(), batches=tuple(map(frozenset, batches)))]
    cases: list[Case] = []
    while stack:
        case = stack.pop()
        found = contracted(clash, case.splits)
        if found is None:
            cases.append(Case(splits=case.splits, weights=(0,) * clash.shape[0]))
            continue
        met, group = found
        program = Program(met.shape[0])
        program.add([tuple(np.unique(group[list(batch)]).tolist()) for batch in case.batches])
        nothing = np.zeros((met.shape[0], 0), dtype=np.int32)
        conflicts = Conflicts(clash=met, hyperedge_of=nothing, budget=np.zeros(0, dtype=np.int32))
        search = PriceSearch(program, conflicts, met.shape[0])
        weights, bound = search.proven(batch_count, work, least=batch_count)
        if bound >= batch_count:
            first = np.unique(group, return_index=True)[1]
            of_broker = np.zeros(clash.shape[0], dtype=np.int64)
            of_broker[first] = weights
            cases.append(Case(splits=case.splits, weights=tuple(of_broker.tolist())))
            continue
        pair = _half_together(met, program)
        if pair is None or work.left <= 0 or len(cases) + len(stack) >= CASES_MAX:
            return ()
        one, other = (int(np.flatnonzero(group == each)[0]) for each in pair)
        members = [np.flatnonzero(group == each).tolist() for each in range(met.shape[0])]
        known = [frozenset(broker for each in batch for broker in members[each]) for batch in program.batches]
        for together in (False, True):
            kept = tuple(batch for batch in known if _fits(batch, one, other, together))
            stack.append(_Open(splits=(*case.splits, Split(one, other, together)), batches=kept))
    return tuple(cases)


def _fits(batch: frozenset[int], one: int, other: int, together: bool) -> bool:
    """Return whether a batch holds two brokers as a case says: both or neither, or not both."""
    return (one in batch) == (other in batch) if together else not (one in batch and other in batch)


def _half_together(met: ByteArray, program: Program) -> tuple[int, int] | None:
    """Return the two groups whose share of common batches is nearest to a half; None if all shares are 0 or 1."""
    together = program.together()
    ones, others = np.triu_indices(met.shape[0], 1)
    shares = together[ones, others]
    halves = np.minimum(shares, 1 - shares)
    halves[met[ones, others] > 0] = 0
    if float(halves.max(initial=0)) < _HALF_LEAST:
        return None
    near = np.flatnonzero(halves >= _HALF_LEAST)
    ones, others = ones[near], others[near]
    clashes = (met[ones] | met[others]).mean(axis=1)
    best = int(np.argmax(halves[near] + clashes))
    return int(ones[best]), int(others[best])
