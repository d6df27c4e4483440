"""A line for each cell of a study's grid, with an interval for each share.

A share is the sum over a cell's runs of what is counted by the sum of what it is counted of, as lost
by acknowledged writes; other columns are means over runs. The interval of 95 % comes from how the runs differ.

Constraints: only runs that came to their end count; their number, and those of the others, stand beside.

Source: Cochran, Sampling Techniques, 3rd edition, section 2.11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs

from replication.studies.rows import BROKEN, DONE, FAILED, REFUSED, Measures, Row
from replication.studies.study import Study

Z_95: Final = 1.96
_Part = Callable[[Measures], float]
_SHARES: Final[Mapping[str, tuple[_Part, _Part]]] = MappingProxyType(
    {
        "lost_share": (lambda m: m.lost_all + m.lost_one, lambda m: m.acked_all + m.acked_one),
        "unavailable_share": (lambda m: m.unavailable_ms, lambda m: m.partition_ms),
        "leaderless_share": (lambda m: m.leaderless_ms, lambda m: m.partition_ms),
        "unclean_share": (
            lambda m: m.unclean_elections,
            lambda m: m.clean_elections + m.elr_elections + m.unclean_elections,
        ),
    }
)


@attrs.frozen
class Estimate:
    """Hold a value with the bounds of its interval of 95 %; all are NaN where nothing was counted."""

    value: float
    low: float
    high: float


@attrs.frozen(kw_only=True)
class Cell:
    """Hold one combination of the grid: its values, the numbers of its runs by status, an estimate for each measure."""

    number: int
    values: Mapping[str, object]
    done_count: int
    broken_count: int
    refused_count: int
    failed_count: int
    estimates: Mapping[str, Estimate]
    reason: str = ""
    """Why the first run that was not done was not."""

    @property
    def label(self) -> str:
        """Return the values in words: acks all, min_isr 2."""
        return ", ".join(f"{name} {value_of(value)}" for name, value in self.values.items()) or "all runs"


def summarise(study: Study, rows: Iterable[Row]) -> list[Cell]:
    """Return the cells of a study in the order of its grid."""
    by_cell: dict[int, list[Row]] = {number: [] for number in range(study.cell_count)}
    for row in rows:
        by_cell[row.cell].append(row)
    return [_cell(study, number, values, by_cell[number]) for number, values in enumerate(study.cells())]


def _cell(study: Study, number: int, values: Mapping[str, object], rows: Sequence[Row]) -> Cell:
    counts = {status: sum(row.status == status for row in rows) for status in (DONE, BROKEN, REFUSED, FAILED)}
    counted = [row for row in rows if row.is_counted]
    return Cell(
        number=number,
        values=values,
        done_count=counts[DONE],
        broken_count=counts[BROKEN],
        refused_count=counts[REFUSED],
        failed_count=counts[FAILED],
        estimates={name: estimate(name, counted) for name in study.measures},
        reason=next((row.reason for row in rows if row.status != DONE), ""),
    )


def estimate(name: str, rows: Sequence[Row]) -> Estimate:
    """Return a measure of some runs: a share, or the mean of a column."""
    if name in _SHARES:
        part, whole = _SHARES[name]
        return ratio([part(row.measures) for row in rows], [whole(row.measures) for row in rows])
    return ratio([float(str(row.cells()[name])) for row in rows], [1.0] * len(rows))


def ratio(parts: Sequence[float], wholes: Sequence[float]) -> Estimate:
    """Return the sum of the parts by the sum of the wholes, with its interval."""
    count, whole = len(parts), sum(wholes)
    if not whole:
        return Estimate(math.nan, math.nan, math.nan)
    value = sum(parts) / whole
    if count < 2:
        return Estimate(value, math.nan, math.nan)
    squares = sum((part - value * of) ** 2 for part, of in zip(parts, wholes, strict=True))
    error = math.sqrt(squares / (count - 1) * count) / whole
    return Estimate(value, max(0.0, value - Z_95 * error), value + Z_95 * error)


def value_of(value: object) -> str:
    """Return a parameter's value in words: on and off for true and false."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
