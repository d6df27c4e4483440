"""Sum up answers over clusters: means and quantiles of groups of rows, in a fixed order.

Constraints: rows with a fault are left out; a value that is null is left out of its mean. Sums are exact (math.fsum),
so that they do not depend on the order of rows.

Example:
    >>> rows = pa.table({"placer": ["a", "a", "b"], "n": [1, 2, 5], "fault": pa.nulls(3, pa.string())})
    >>> means(rows, ("placer",), ("n",))
    (('a', 1.5), ('b', 5.0))
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_analysis.answers.question import Cell


def groups(rows: pa.Table, by: Sequence[str]) -> list[tuple[tuple[Cell, ...], pa.Table]]:
    """Return the rows without a fault of each value of the columns `by`, in order of the values, nulls first."""
    good = rows.filter(pc.is_null(rows["fault"]))
    keys = list(zip(*(good[name].to_pylist() for name in by), strict=True))
    places: dict[tuple[Cell, ...], list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    ordered = sorted(places, key=lambda key: tuple((value is not None, value) for value in key))
    return [(key, good.take(pa.array(places[key]))) for key in ordered]


def is_of_one_placer(rows: pa.Table) -> bool:
    """Return whether the rows are of one placer, so that one sentence can be said of all of them."""
    return bool(pc.count_distinct(rows["placer"]).as_py() == 1)


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the known values; None without any."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def quantile(values: Sequence[float | None], share: float) -> float | None:
    """Return the smallest known value that so large a share of them does not exceed; None without any.

    >>> quantile([3.0, 1.0, None, 2.0], 0.5), quantile([3.0, 1.0, 2.0], 0.99)
    (2.0, 3.0)
    """
    known = sorted(value for value in values if value is not None)
    return known[max(0, math.ceil(share * len(known)) - 1)] if known else None


def means(rows: pa.Table, by: Sequence[str], columns: Sequence[str]) -> tuple[tuple[Cell, ...], ...]:
    """Return a row for each value of the columns `by`: the value, and the mean of each of `columns`."""
    return tuple((*key, *(mean(some[name].to_pylist()) for name in columns)) for key, some in groups(rows, by))
