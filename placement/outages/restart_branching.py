"""Find cases in which prices prove that every schedule has more batches than asked for.

What it decides: a proof for `restart_cases.cases_prove` where the prices of the best fractional schedule prove too
little: in it two brokers are half together and half apart, and in both cases it takes more batches.

Constraints: no chance and no clock: pivots are bounded and numbers drawn from a fixed seed.

How: a case whose prices prove enough is done. Another one is split by the two brokers that are nearest to half
together in its best fractional schedule; of equals those that leave the most clashes. Batches found in one case are
columns in the next if they fit. It ends without a proof after `pivots_max` pivots.

Source: Mehrotra & Trick, "A column generation approach for graph coloring", INFORMS Journal on Computing, 1996.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int64Array
from placement.outages.restart_cases import CASES_MAX, Case, Split, contracted, heavier
from placement.outages.restart_check import Conflicts
from placement.outages.restart_columns import WEIGHT_SCALE, Program, heavy_batches
from placement.outages.restart_search_kernel import ByteArray

ROUNDS_MAX: Final = 2_000
STEPS_MAX: Final = 400_000_000  # Comparisons for all exact searches, about two seconds.
STEPS_QUICK: Final = 3_000_000  # Some milliseconds: less than many searches take.
_HALF_LEAST: Final = 1e-4
_VALUE_EPSILON: Final = 1e-3


@attrs.frozen(kw_only=True, eq=False)
class _Open:
    """Hold a case that is not proven yet, and batches to begin with, as brokers."""

    splits: tuple[Split, ...]
    batches: tuple[tuple[int, ...], ...]


@attrs.define
class _Budget:
    """Hold the pivots and the comparisons that may still be made."""

    pivots: int
    steps: int = STEPS_MAX


def proven_cases(
    clash: ByteArray, batches: Sequence[Sequence[int]], batch_count: int, pivots_max: int
) -> tuple[Case, ...]:
    """Return cases that prove that every schedule has `batch_count` batches or more; none if none were found.

    `batches` are what the search begins with; only pairs of brokers in `clash` uint8[N, N] may forbid a batch.
    """
    stack = [_Open(splits=(), batches=tuple(map(tuple, batches)))]
    cases: list[Case] = []
    left = _Budget(pivots_max)
    while stack:
        case = stack.pop()
        found = contracted(clash, case.splits)
        if found is None:
            cases.append(Case(splits=case.splits, weights=(0,) * clash.shape[0]))
            continue
        met, group = found
        program = Program(met.shape[0], pivots_max=left.pivots)
        program.add(_fitting(met, group, case.batches))
        weights = _proven(met, program, batch_count, left)
        left.pivots -= program.pivots
        if weights is not None:
            first = np.unique(group, return_index=True)[1]
            of_broker = np.zeros(clash.shape[0], dtype=np.int64)
            of_broker[first] = weights
            cases.append(Case(splits=case.splits, weights=tuple(of_broker.tolist())))
            continue
        pair = _half_together(met, program)
        if pair is None or min(left.pivots, left.steps) <= 0 or len(cases) + len(stack) >= CASES_MAX:
            return ()
        one, other = (int(np.flatnonzero(group == each)[0]) for each in pair)
        known = tuple(tuple(np.flatnonzero(np.isin(group, batch)).tolist()) for batch in program.batches)
        for together in (False, True):
            stack.append(_Open(splits=(*case.splits, Split(one, other, together)), batches=known))
    return tuple(cases)


def _fitting(met: ByteArray, group: Int64Array, batches: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the batches in groups; what clashes, or is not a whole group, is left out."""
    sizes = np.bincount(group)
    fitting: dict[tuple[int, ...], None] = {}
    for batch in batches:
        inside = np.flatnonzero(np.bincount(group[list(batch)], minlength=sizes.size) == sizes)
        if inside.size and not met[np.ix_(inside, inside)].any():
            fitting[tuple(inside.tolist())] = None
    return list(fitting)


def _proven(met: ByteArray, program: Program, batch_count: int, left: _Budget) -> Int64Array | None:
    """Return weights of the groups that prove `batch_count` batches; None if the best fractional schedule has fewer."""
    count = met.shape[0]
    nothing = np.zeros((count, 0), dtype=np.int32)
    conflicts = Conflicts(clash=met, hyperedge_of=nothing, budget=np.zeros(0, dtype=np.int32))
    for turn in range(ROUNDS_MAX):
        program.solve()
        if program.value <= batch_count - 1 + _VALUE_EPSILON or program.is_spent:
            return None
        weights = np.maximum(np.floor(program.prices * WEIGHT_SCALE), 0).astype(np.int64)
        if program.add(heavy_batches(conflicts, count, weights, turn)):
            continue
        batch, steps = heavier(met, weights, batch_count, steps_max=STEPS_QUICK)
        left.steps -= steps
        if batch is None:
            if program.add(heavy_batches(conflicts, count, weights, turn, many=True)):
                continue
            batch, steps = heavier(met, weights, batch_count, steps_max=max(left.steps, 0))
            left.steps -= steps
        if batch is not None and not batch.size:
            return weights
        if batch is None or not program.add([tuple(batch.tolist())]):
            return None
    return None


def _half_together(met: ByteArray, program: Program) -> tuple[int, int] | None:
    """Return the two groups whose share of common batches is nearest to a half; None if all shares are 0 or 1."""
    together = program.together()
    ones, others = np.triu_indices(met.shape[0], 1)
    shares = together[ones, others]
    halves = np.minimum(shares, 1 - shares)
    halves[met[ones, others] > 0] = 0
    if not halves.size or float(halves.max()) < _HALF_LEAST:
        return None
    clashes = (met[ones] | met[others]).sum(axis=1) / met.shape[0]
    best = int(np.argmax(np.where(halves >= _HALF_LEAST, halves + clashes, -1.0)))
    return int(ones[best]), int(others[best])
