"""The axis of time of a chart, and lines in steps along it.

It decides where a time stands in the picture, which times are named, and how many points a line of steps has at most.

Worked example: a run of 630 s is named every 60 s, in minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

LEFT: Final = 150
WIDTH: Final = 960
RIGHT: Final = 70
_TICKS_MS: Final = tuple(
    1_000 * seconds for seconds in (1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400)
)
_TICK_COUNT_MAX: Final = 12
_UNITS: Final = ((3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_HALF_PIXEL: Final = 0.5


class TimeAxis:
    """Times from 0 to `end_ms`, over the width of the picture."""

    def __init__(self, end_ms: int) -> None:
        self.end_ms = max(1, end_ms)

    def x(self, at_ms: int) -> float:
        """Return where a time stands."""
        return round(LEFT + WIDTH * at_ms / self.end_ms, 1)

    def lines(self, top: int, bottom: int) -> Iterator[str]:
        """Yield thin lines at round times, named below."""
        tick_ms = next((each for each in _TICKS_MS if self.end_ms / each <= _TICK_COUNT_MAX), 0)
        while tick_ms == 0 or self.end_ms / tick_ms > _TICK_COUNT_MAX:
            tick_ms = 2 * (tick_ms or _TICKS_MS[-1])
        unit_ms, unit = next(each for each in _UNITS if tick_ms >= each[0])
        for at_ms in range(0, self.end_ms + 1, tick_ms):
            x = self.x(at_ms)
            yield f'<path class="axis" d="M{x},{top} V{bottom + 4}"/>'
            yield f'<text class="q" x="{x}" y="{bottom + 20}" text-anchor="middle">{at_ms / unit_ms:g} {unit}</text>'


def stepped(steps: Sequence[tuple[float, float]], right: float) -> str:
    """Return a path that holds each y from its x to the next x, the last one up to `right`."""
    if not steps:
        return ""
    points = list(_thinned(steps))
    path = [f"M{points[0][0]},{points[0][1]}"]
    for x, y in points[1:]:
        path.append(f"H{x}V{y}")
    return " ".join([*path, f"H{right}"])


def _thinned(steps: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the steps, of those within half a pixel the least, the greatest and the last only."""
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
