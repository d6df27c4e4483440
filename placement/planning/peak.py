"""Run the batches of a plan through the disks of the brokers: the peak bytes of each.

When a batch starts, every new replica of it counts with its full size; nothing is freed before the batch's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from broker.cluster import ClusterView, Int64Array
from placement.balance.loads import loads
from placement.planning.completion import completed_view
from placement.planning.moves import Moves, freed_bytes
from placement.planning.reassignment import Reassignment


@attrs.frozen(kw_only=True, eq=False)
class Disks:
    """Hold the bytes of each broker before, at the peak and after, int64[B]."""

    before: Int64Array
    peak: Int64Array
    after: Int64Array


def in_order(plans: Sequence[Reassignment]) -> Iterator[Reassignment]:
    """Yield each plan over the view that the plans before it leave; all are given over the same view."""
    view: ClusterView | None = None
    for number, plan in enumerate(plans):
        current = plan if view is None else attrs.evolve(plan, view=view)
        yield current
        if number + 1 < len(plans):
            view = completed_view(current)


def disks(
    plans: Sequence[Reassignment],
    known: Sequence[Moves] | None = None,
    held: Int64Array | None = None,
    inside: Sequence[Int64Array] | None = None,
) -> Disks | None:
    """Return the disks while `plans`, each over the view that the one before it leaves, run in order.

    `known` are their moves and `held` the bytes before, if the caller has them, and `inside` what each copies inside
    brokers. None where a size is not known, or without a plan.
    """
    held = loads(plans[0].view).brokers.size_bytes if plans and held is None else held
    if held is None:
        return None
    before, peak = held, held
    for number, (plan, moves) in enumerate(zip(plans, known or map(Moves.of, plans), strict=True)):
        if not moves.sizes_known:
            return None
        coming = held + moves.bytes_in()
        peak = np.maximum(peak, coming if inside is None else coming + inside[number])
        held = coming - freed_bytes(plan)
    return Disks(before=before, peak=peak, after=held)
