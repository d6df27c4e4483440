"""Tell rows of brokers from the rows of partitions among which they stand, and hold those of many clusters.

A row of brokers is marked by `OF_BROKER`, and its columns have names that begin with `BROKER_PREFIX`. The brokers of a
cluster are regular if each is listed once and can be used, none is fenced, cordoned or shutting down, and their
totals, where asked for, are the replicas of the partitions that are listed.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from broker.cluster import BROKER_FLAGS, Int64Array
from spark_analysis.frames.matrices import ID_BITS, INT_MAX, mask_of, whole

OF_BROKER: Final = "is_of_broker"
BROKER_PREFIX: Final = "of_broker_"


def split(rows: pa.Table) -> tuple[Int64Array, pa.Table]:
    """Return the places of the rows of partitions, and the rows of brokers under the names that they had."""
    names = [name for name in rows.column_names if name.startswith(BROKER_PREFIX)]
    brokers = rows.filter(rows[OF_BROKER]).select(names)
    return of_partitions(rows), brokers.rename_columns([name.removeprefix(BROKER_PREFIX) for name in names])


def of_partitions(rows: pa.Table) -> Int64Array:
    """Return the places of the rows of partitions."""
    return np.flatnonzero(~mask_of(rows[OF_BROKER]))


@attrs.frozen(eq=False)
class ListedBrokers:
    """Hold the brokers that rows list of regular clusters: `codes` int64[B], clusters and ids, ascending.

    `racks` are their names, "" for none.
    """

    codes: Int64Array
    racks: Any

    @classmethod
    def none(cls) -> ListedBrokers:
        """Return no brokers."""
        return cls(np.zeros(0, np.int64), pa.array([], pa.string()))

    @classmethod
    def of(
        cls, rows: pa.Table, cluster: Int64Array, replica_counts: Int64Array, is_regular: NDArray[np.bool_]
    ) -> ListedBrokers:
        """Return the brokers in rows, each of the cluster of this number; `is_regular` is narrowed.

        `replica_counts` int64[K] are the replicas of the partitions that are listed.
        """
        bad = mask_of(pc.is_null(rows["broker_id"])).copy()
        if "fault" in rows.column_names:
            bad |= mask_of(pc.is_valid(rows["fault"]))
        for name in BROKER_FLAGS:
            if name in rows.column_names:
                flags: Any = rows[name]
                bad |= mask_of(pc.fill_null(flags, False))
        ids = pc.fill_null(whole(rows["broker_id"]).cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        bad |= (ids < 0) | (ids > INT_MAX)
        is_regular[cluster[bad]] = False
        _refuse_totals(rows, cluster, replica_counts, is_regular)
        kept = np.flatnonzero(is_regular[cluster])
        codes = (cluster[kept] << ID_BITS) | ids[kept]
        order = np.argsort(codes, kind="stable")
        codes, places = codes[order], pa.array(kept[order])
        is_regular[codes[1:][codes[1:] == codes[:-1]] >> ID_BITS] = False
        has_racks = "rack" in rows.column_names
        racks: Any = whole(rows["rack"]).take(places) if has_racks else pa.nulls(codes.size, pa.string())
        return cls(codes, pc.fill_null(racks.cast(pa.string()), ""))

    def kept(self, is_regular: NDArray[np.bool_]) -> ListedBrokers:
        """Return the brokers of the clusters that are still regular."""
        places = np.flatnonzero(is_regular[self.codes >> ID_BITS])
        return ListedBrokers(self.codes[places], self.racks.take(pa.array(places)))


def _refuse_totals(
    rows: pa.Table, cluster: Int64Array, replica_counts: Int64Array, is_regular: NDArray[np.bool_]
) -> None:
    """Exclude clusters whose brokers report another number of replicas than the rows list."""
    if "replica_count" not in rows.column_names:
        return
    said = whole(rows["replica_count"])
    knows = np.bincount(cluster[mask_of(pc.is_null(said))], minlength=is_regular.size) == 0
    held = np.zeros(is_regular.size, np.int64)
    np.add.at(held, cluster, pc.fill_null(said.cast(pa.int64()), 0).to_numpy(zero_copy_only=False))
    is_regular &= ~(knows & (held != replica_counts))
