"""What every area of the comparison offers, the loop that runs them in turn, and how a difference is made small.

Case k of an area is a function of (seed, area, k) alone. The area that has had the least time is run for a slice of it.
A difference is made smaller greedily: the first smaller case that still differs takes its place. An area ends after
`DIFFERENCE_COUNT_MAX`.

Example: run(areas, seed=1, seconds=60).case_counts
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar

import attrs

Case = TypeVar("Case")

SLICE_SECONDS: Final = 2.0
SHRINK_TRIES_MAX: Final = 2000
SHRINK_SECONDS_MAX: Final = 120.0
DIFFERENCE_COUNT_MAX: Final = 5


@attrs.frozen(kw_only=True)
class Area(Generic[Case]):
    """One kind of comparison.

    `draw` makes case `number` of a seed; `difference` asks both and tells what differs, None where nothing does;
    `smaller` yields cases with less in them; `answer_count` is how many answers a case compares, as a life or a history
    has one for each step.
    """

    name: str
    draw: Callable[[int, int], Case]
    difference: Callable[[Case], str | None]
    smaller: Callable[[Case], Iterator[Case]]
    answer_count: Callable[[Case], int] = lambda case: 1


@attrs.frozen
class Found(Generic[Case]):
    """A difference: where it was, and the case after shrinking with what differs in it."""

    area: str
    seed: int
    number: int
    case: Case
    difference: str

    def __str__(self) -> str:
        return f"{self.area}: case {self.number} of seed {self.seed}, shrunk to\n  {self.case}\n  {self.difference}"


@attrs.define
class Tally:
    """The number of cases by area, of answers compared in them, and the differences."""

    case_counts: dict[str, int] = attrs.field(factory=dict)
    answer_counts: dict[str, int] = attrs.field(factory=dict)
    found: list[Found[Any]] = attrs.field(factory=list)

    def lines(self) -> Iterator[str]:
        """Yield a line for each area, and one for all."""
        for name, count in self.case_counts.items():
            yield _line(name, count, self.answer_counts.get(name, 0), self.of(name))
        counts = sum(self.case_counts.values()), sum(self.answer_counts.values())
        yield _line("all", *counts, len(self.found))

    def of(self, area: str) -> int:
        """Return the number of differences of an area."""
        return sum(found.area == area for found in self.found)


def _line(name: str, case_count: int, answer_count: int, difference_count: int) -> str:
    return f"{name:20} {case_count:>10,} cases {answer_count:>10,} answers {difference_count:>4} differences"


def run(
    areas: Sequence[Area[Any]],
    *,
    seed: int,
    seconds: float,
    now: Callable[[], float] = time.monotonic,
    tell: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """Run cases of all areas in turn until the time is over; `tell` gets the tally after each slice."""
    tally = Tally({area.name: 0 for area in areas}, {area.name: 0 for area in areas})
    spent = dict.fromkeys(tally.case_counts, 0.0)
    end = now() + seconds
    left = list(areas)
    while left and now() < end:
        area = min(left, key=lambda each: spent[each.name])
        begun = now()
        while now() < min(end, begun + SLICE_SECONDS) and tally.of(area.name) < DIFFERENCE_COUNT_MAX:
            run_case(area, seed, tally, now)
        spent[area.name] += now() - begun
        left = [each for each in left if tally.of(each.name) < DIFFERENCE_COUNT_MAX]
        tell(tally)
    return tally


def run_case(area: Area[Any], seed: int, tally: Tally, now: Callable[[], float]) -> None:
    """Run the next case of an area, and shrink what differs in it."""
    number = tally.case_counts[area.name]
    case = area.draw(seed, number)
    difference = area.difference(case)
    tally.case_counts[area.name] += 1
    tally.answer_counts[area.name] = tally.answer_counts.get(area.name, 0) + area.answer_count(case)
    if difference is not None:
        tally.found.append(Found(area.name, seed, number, *shrunk(area, case, difference, now=now)))


def shrunk(
    area: Area[Case], case: Case, difference: str, *, now: Callable[[], float] = time.monotonic
) -> tuple[Case, str]:
    """Return a case with less in it that still differs, and what differs in it."""
    tries, end = 0, now() + SHRINK_SECONDS_MAX
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in area.smaller(case):
            tries += 1
            if tries > SHRINK_TRIES_MAX or now() > end:
                return case, difference
            again = area.difference(candidate)
            if again is not None:
                case, difference, is_smaller = candidate, again, True
                break
    return case, difference


def fewer(items: Sequence[Case]) -> Iterator[list[Case]]:
    """Yield lists with less in them: without one of its halves, its quarters and so on, last without one item each."""
    size = len(items) // 2
    while size:
        for start in range(0, len(items), size):
            yield [*items[:start], *items[start + size :]]
        size //= 2
    if len(items) == 1:
        yield []
