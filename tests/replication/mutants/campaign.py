"""Run simulations of every shape for some CPU seconds, and say what the first broken one broke.

What it decides: the shapes, taken in turn, each with the next seed. A run is noticed that breaks an invariant, loses
what its settings do not allow, or ends in an exception of any kind.

Constraints: the campaign knows nothing of the mutants, and compares with no other run.

Source: ours.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import attrs

from broker.units import DurationMs
from replication.groups import GroupsExtension, with_groups
from replication.simulation import Extension, Options, harsh, quiet, run, swarm, with_retention
from tests.replication.mutants.until_noticed import Check, until_noticed

MINUTE: Final = DurationMs(60_000)


@attrs.frozen
class Shape:
    """Hold how a run is drawn from a seed: its options, and what joins it."""

    options: Callable[[int], Options]
    extension: Callable[[Options], Extension | None] = lambda options: None


def _groups(options: Options) -> Extension:
    return GroupsExtension.drawn(options, 2)


SHAPES: Final[Mapping[str, Shape]] = MappingProxyType(
    {
        "swarm": Shape(lambda seed: swarm(seed, MINUTE)),
        "harsh": Shape(lambda seed: harsh(seed, MINUTE)),
        "groups": Shape(lambda seed: with_groups(swarm(seed, MINUTE)), _groups),
        "retention": Shape(lambda seed: with_retention(harsh(seed, MINUTE))),
        "quiet": Shape(lambda seed: quiet(seed, MINUTE)),
    }
)


def noticed(shape: str, seed: int) -> str:
    """Return what one run noticed, "" if nothing."""
    options = SHAPES[shape].options(seed)
    outcome = run(options, extension=SHAPES[shape].extension(options))
    return str(outcome.findings[0]) if outcome.is_broken else ""


def main(arguments: list[str]) -> int:
    """Run until the CPU seconds are spent or something is noticed; the status is 1 if something is."""
    seconds, first = float(arguments[0]), int(arguments[1])
    seeded = enumerate(itertools.cycle(SHAPES), start=first)
    return until_noticed(
        (Check(f"{shape} {seed}", partial(noticed, shape, seed)) for seed, shape in seeded), seconds, "runs"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
