"""Run the explorer's models for some CPU seconds, and say what the first unexpected outcome was.

What it decides: the searches, cheapest first: today's rules hold in every state that is looked at, and each known
variant is violated after the number of steps that `VARIANTS` states.

Source: ours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Final

import attrs

from replication.explore import QuorumModel, QuorumScope, search
from replication.explore.search import Model
from replication.explore.variants import FULL, VARIANTS
from tests.replication.mutants.until_noticed import Check, until_noticed

STATES_MAX: Final = 20_000


@attrs.frozen
class Search:
    """Hold one search: its name, its model, and the number of steps to its violation, None if there is none."""

    name: str
    model: Model
    depth: int | None


def searches() -> Iterator[Search]:
    """Yield the searches, those of today's rules first, then the variants with the shortest histories."""
    for variant in FULL:
        yield Search(variant.name, variant.model(), None)
    yield Search("quorum", QuorumModel(QuorumScope()), None)
    for variant in sorted(VARIANTS, key=lambda variant: variant.depth or 0):
        yield Search(variant.name, variant.model(), variant.depth)


def noticed(wanted: Search) -> str:
    """Return what a search noticed, "" if nothing."""
    outcome = search(wanted.model, state_count_max=STATES_MAX if wanted.depth is None else None)
    if wanted.depth is None:
        return "" if outcome.fault is None else f"{outcome.fault} after {outcome.depth} steps"
    if outcome.fault is None:
        return f"holds, and was violated after {wanted.depth} steps"
    return "" if outcome.depth == wanted.depth else f"{outcome.depth} steps instead of {wanted.depth}"


def main(arguments: list[str]) -> int:
    """Run until the CPU seconds are spent or something is noticed; the status is 1 if something is."""
    checks = (Check(each.name, partial(noticed, each)) for each in searches())
    return until_noticed(checks, float(arguments[0]), "searches")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
