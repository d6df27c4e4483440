"""Place the times of a run along a picture, label round times, and draw lines of steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

TICK_COUNT_MAX: Final = 12
TICKS_S: Final = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400)
"""Round distances between two ticks, in seconds; beyond the last one it is doubled."""
_UNITS: Final = ((3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_HALF_PIXEL: Final = 0.5


class TimeAxis:
    """Map the times from 0 to `end_ms` to x coordinates from `left` to `left` + `width`."""

    def __init__(self, end_ms: int, *, left: float, width: float, ticks_s: Sequence[int] = TICKS_S) -> None:
        self.end_ms = max(1, end_ms)
        self._left = left
        self._width = width
        self._tick_ms = _tick_ms(self.end_ms, ticks_s)
        self._unit_ms, self._unit = next(each for each in _UNITS if self._tick_ms >= each[0])

    def exact(self, at_ms: float) -> float:
        """Return the x coordinate of a time, unrounded."""
        return self._left + self._width * at_ms / self.end_ms

    def x(self, at_ms: float) -> float:
        """Return the x coordinate of a time, rounded to one decimal."""
        return round(self.exact(at_ms), 1)

    def ticks(self) -> range:
        """Return the round times to label, in milliseconds, from 0 on."""
        return range(0, self.end_ms + 1, self._tick_ms)

    def name(self, at_ms: int) -> str:
        """Return the label of a tick, in the unit that all ticks share: "90 s", "5 min" or "12 h"."""
        return f"{at_ms / self._unit_ms:g} {self._unit}"


def _tick_ms(end_ms: int, ticks_s: Sequence[int]) -> int:
    chosen = next((1_000 * each for each in ticks_s if end_ms / (1_000 * each) <= TICK_COUNT_MAX), 0)
    while chosen == 0 or end_ms / chosen > TICK_COUNT_MAX:
        chosen = 2 * (chosen or 1_000 * ticks_s[-1])
    return chosen


def stepped(steps: Sequence[tuple[float, float]], right: float) -> str:
    """Return SVG path data of a step line: each y lasts from its x to the next x, the last y to `right`."""
    if not steps:
        return ""
    points = list(_thinned(steps))
    path = [f"M{points[0][0]},{points[0][1]}"]
    for x, y in points[1:]:
        path.append(f"H{x}V{y}")
    return " ".join([*path, f"H{right}"])


def _thinned(steps: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the steps; of those within half a pixel only the lowest, the highest and the last."""
    near: list[tuple[float, float]] = []
    for step in steps:
        if near and step[0] - near[0][0] >= _HALF_PIXEL:
            yield from _extremes(near)
            near = []
        near.append(step)
    yield from _extremes(near)


def _extremes(near: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    if len(near) <= 3:
        yield from near
        return
    heights = [y for _, y in near]
    yield near[0][0], min(heights)
    yield near[0][0], max(heights)
    yield near[-1]
