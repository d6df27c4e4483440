"""Random lives of consumer groups, an area for each of Kafka's assignors.

How: `tests.kafka.assignor_differential` draws a life from its number, asks both at each step, and makes the group of
the step that differs small by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.kafka.assignor_differential import ASSIGNORS, compare_life
from tests.kafka.assignor_jvm import AssignorJvm
from tests.kafka.differential.areas import Area

Life = tuple[int, int]
"""A seed and the number of a life."""


def areas(kafka: AssignorJvm) -> list[Area[Life]]:
    """Return an area for each assignor."""
    return [_area(kafka, assignor) for assignor in ASSIGNORS]


def _area(kafka: AssignorJvm, assignor: str) -> Area[Life]:
    steps = [0]

    def difference(life: Life) -> str | None:
        found, steps[0] = compare_life(kafka, assignor, kafka.release, seed=life[0], case=life[1])
        return None if found is None else str(found)

    return Area(
        name=assignor,
        draw=lambda seed, number: (seed, number),
        difference=difference,
        smaller=_none,
        problem_count=lambda: steps[0],
    )


def _none(life: Life) -> Iterator[Life]:
    yield from ()
