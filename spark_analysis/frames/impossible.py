"""Find the rows of partitions that no cluster can have, as the readers of dumps do.

A partition's number is 0 to `PARTITION_ID_MAX`, and its leader and the members of its ISR hold replicas; any other row
is put aside. Rows that lack something or have a fault already, and lists with a null or a number that is no broker's id
in them, are faults of the cluster (views.py).

    >>> lists = pa.array([[1, 2], [1, 2]], pa.list_(pa.int32()))
    >>> rows = pa.table({"topic": ["t", "t"], "partition": [0, 1], "replicas": lists, "leader": [1, 99]})
    >>> impossible(rows).tolist(), why_impossible(rows.slice(1))
    ([False, True], "partition 1 of topic 't': Leader 99 is no replica (1,2)")

Source: broker/partition_faults.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from broker.cluster import PAD, Int64Array
from broker.partition_faults import PARTITION_ID_MAX, fault_of_number, fault_of_row
from spark_analysis.frames.matrices import ID_BITS, INT_MAX, list_counts, mask_of, numbers_of, whole


def impossible(rows: pa.Table) -> NDArray[np.bool_]:
    """Return bool[P]: which rows have a number, a leader or an ISR that no partition can have."""
    place, replica = _cells(rows, "replicas")
    found = np.zeros(rows.num_rows, np.bool_)
    if "leader" in rows.column_names:
        leader = numbers_of(rows["leader"], PAD)
        leads = np.zeros(rows.num_rows, np.bool_)
        leads[place[replica == leader[place]]] = True
        found |= (leader >= 0) & (leader <= INT_MAX) & ~leads
    if "isr" in rows.column_names:
        synced_place, synced = _cells(rows, "isr")
        is_id = (synced >= 0) & (synced <= INT_MAX)
        held, of_isr = (place << ID_BITS) | replica, (synced_place << ID_BITS) | synced
        found[synced_place[is_id & ~np.isin(of_isr, held)]] = True
    found[place[(replica < 0) | (replica > INT_MAX)]] = False
    number = numbers_of(rows["partition"], 0)
    found |= (number < 0) | (number > PARTITION_ID_MAX)
    for name in ("topic", "partition", "replicas"):
        found &= mask_of(pc.is_valid(rows[name]))
    return found


def why_impossible(rows: pa.Table) -> str:
    """Return what is wrong with the first of some impossible rows, by topic and partition."""
    names = [name for name in ("topic", "partition", "replicas", "leader", "isr") if name in rows.column_names]
    order: Any = [(name, "ascending") for name in ("topic", "partition", "leader") if name in names]
    row: dict[str, Any] = rows.select(names).sort_by(order).slice(0, 1).to_pylist()[0]
    topic, number = row["topic"], row["partition"]
    fault = fault_of_number(number, "partition", high=PARTITION_ID_MAX)
    if fault is not None:
        return f"topic {topic!r}: {fault}"
    replicas = row["replicas"]
    isr = [one for one in row.get("isr") or () if one is not None]
    return f"partition {number} of topic {topic!r}: {fault_of_row(row.get('leader'), replicas, isr, isr_name='isr')}"


def _cells(rows: pa.Table, name: str) -> tuple[Int64Array, Int64Array]:
    """Return the row and the value of each broker id in a column of lists; the value is -1 for a null."""
    lists = whole(rows[name])
    place = np.repeat(np.arange(rows.num_rows, dtype=np.int64), list_counts(lists))
    return place, numbers_of(lists.flatten(), PAD)


__all__ = ("impossible", "why_impossible")
