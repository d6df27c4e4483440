"""Count the clusters of a large fleet that have no row on the page, in columns and without an object a cluster.

It decides which columns of the tables the page needs of every cluster, and how they are counted and summed up. Every
number over all clusters, a sum, a median, a histogram, is the one that rows would give (a test compares the two). Only
simulated clusters are counted here: they have neither moments nor gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.cluster import Int64Array
from placement.balance.measures import Float64Array
from spark_analysis.report.figures import PPM

SHARE_COLUMNS: Final = ("cluster_id", "placer", "quantity", "moves_share")
"""Columns of the table of measures that the shares to move are read from."""
SHARE: Final = "_moves_share"
"""What the name of a quantity's column ends with; it is null where nothing is known of the quantity."""
_NOT_COUNTED: Final = ("cluster", "source", "format", "out_of_sync_brokers")


def _equal(column: Any, value: str | int) -> Any:
    """Return whether each value of the column is this one, null where it is null."""
    wanted: Any = pa.scalar(value)
    return pc.equal(column, wanted)


def _numbered(rows: Any, placers: Any) -> Int64Array:
    """Return a number for each row's cluster and placer, -1 where the placer is not among these."""
    places: Any = pc.index_in(rows["placer"], placers)
    of_placer = pc.fill_null(places, -1).to_numpy()
    found: Int64Array = np.where(of_placer < 0, -1, rows["cluster_id"].to_numpy() * len(placers) + of_placer)
    return found


def _none() -> pa.Table:
    return pa.table({"cluster_id": pa.array([], pa.int64())})


@attrs.frozen(eq=False)
class Rest:
    """Hold the clusters beyond the rows of the page, in order of rank, as columns of the table of clusters.

    `columns` has, too, the share of each quantity that has to move, 0 to 1, under its name and `SHARE`.
    """

    columns: Any = attrs.field(factory=_none)
    placers: frozenset[str] = attrs.field(init=False)

    @placers.default
    def _placers(self) -> frozenset[str]:
        return self.values("placer")

    @classmethod
    def of(cls, clusters: pa.Table, shares: Iterable[pa.RecordBatch], quantities: Sequence[str]) -> Rest:
        """Return these rows of the table of clusters, with the shares of `quantities` that have to move.

        `shares` are `SHARE_COLUMNS` of the measures over brokers, in any order, those of other clusters included.
        """
        clusters = clusters.drop_columns(list(_NOT_COUNTED))
        placers = pc.unique(clusters["placer"])
        keys = _numbered(clusters, placers)
        order = np.argsort(keys, kind="stable")
        columns = {name: np.full(keys.size, np.nan) for name in quantities}
        for batch in shares:
            numbers = _numbered(batch, placers)
            places = order[np.minimum(np.searchsorted(keys, numbers, sorter=order), keys.size - 1)]
            of_us = keys[places] == numbers
            values = batch["moves_share"].to_numpy(zero_copy_only=False)
            for name, column in columns.items():
                here = of_us & _equal(batch["quantity"], name).to_numpy(zero_copy_only=False)
                column[places[here]] = values[here]
        for name, column in columns.items():
            clusters = clusters.append_column(name + SHARE, pa.array(column, from_pandas=True))
        return cls(clusters)

    @property
    def count(self) -> int:
        """Return the number of clusters, each once per placer."""
        found: int = self.columns.num_rows
        return found

    @property
    def cluster_ids(self) -> Int64Array:
        """Return the numbers of the clusters."""
        found: Int64Array = self.columns["cluster_id"].to_numpy()
        return found

    def values(self, field: str) -> frozenset[Any]:
        """Return the different values of a column, None for null."""
        return frozenset(pc.unique(self.columns[field]).to_pylist()) if self.count else frozenset()

    def of_placer(self, placer: str) -> Rest:
        """Return the clusters that this placer placed."""
        return self._where(_equal(self.columns["placer"], placer)) if self.count else self

    def known(self, field: str) -> Rest:
        """Return the clusters whose value in a column is known."""
        return self._where(pc.is_valid(self.columns[field])) if self.count else self

    def total(self, field: str) -> int | None:
        """Return the sum of a column over the known values; None when no value is known."""
        found: int | None = pc.sum(self.columns[field]).as_py() if self.count else None
        return found

    def with_any(self, field: str) -> int:
        """Return the number of clusters whose value in a column is known and more than 0."""
        if not self.count:
            return 0
        zero: Any = pa.scalar(0)  # Here, as pyarrow's first value loads pandas unless the command has a say.
        return int(pc.sum(pc.greater(self.columns[field], zero)).as_py() or 0)

    def without_any(self, field: str) -> int:
        """Return the number of clusters whose value in a column is 0."""
        return int(pc.sum(_equal(self.columns[field], 0)).as_py() or 0) if self.count else 0

    def shares(self, quantity: str) -> Float64Array:
        """Return the shares of a quantity that have to move, where they are known."""
        if not self.count:
            return np.empty(0)
        found: Float64Array = self.columns[quantity + SHARE].drop_null().to_numpy()
        return found

    def parts_per_million(self, quantity: str) -> Int64Array:
        """Return the same in whole parts per million, as `figures.ppm` rounds them."""
        shares = self.shares(quantity)
        shares = shares[np.isfinite(shares)]
        rounded: Int64Array = np.where(shares <= 0, 0, np.maximum(1, np.rint(shares * PPM))).astype(np.int64)
        return rounded

    def uneven_count(self, tolerance: float) -> int:
        """Return the number of clusters in which more than this share of some quantity, 0 to 1, has to move."""
        found = np.zeros(self.count, dtype=np.bool_)
        for name in self.columns.column_names:
            if name.endswith(SHARE):
                found |= np.nan_to_num(self.columns[name].to_numpy()) > tolerance
        return int(np.count_nonzero(found))

    def groups(self) -> Iterator[tuple[str, str, Rest]]:
        """Return the clusters of each shape and placer, with both names; the shape is empty where there is none."""
        for placer in sorted(self.placers):
            placed = self.of_placer(placer)
            for shape in sorted(placed.values("shape"), key=lambda name: name or ""):
                column = placed.columns["shape"]
                yield (
                    shape or "",
                    placer,
                    placed._where(pc.is_null(column) if shape is None else _equal(column, shape)),
                )

    def _where(self, mask: Any) -> Rest:
        return Rest(self.columns.filter(mask))
