"""Turn padded matrices of broker ids into Arrow lists, without a Python object per partition.

A list column is the numbers that are no pads, one row after another, and where each row of them begins:

    >>> id_lists(np.array([[1, 2], [3, -1]], dtype=np.int32)).to_pylist()
    [[1, 2], [3]]
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.broker_rows import broker_rows
from broker.cluster import ClusterView, Int32Array, Int64Array
from broker.row_flags import count_in_row
from placement.balance.loads import LEADER_NOT_SAID


def leader_column(leader: Int32Array | None) -> Any:
    """Return the leaders as a column: -1 for no leader, null where the input does not say."""
    return None if leader is None else pa.array(leader, mask=leader == LEADER_NOT_SAID)


def id_lists(rows: Int32Array | None) -> Any:
    """Return each row of a padded matrix as a list; None, as the input does not say, stays None."""
    if rows is None:
        return None
    held = rows >= 0
    # Most tables have no pads: nothing is picked out.
    return pa.ListArray.from_arrays(list_offsets(held), pa.array(rows.ravel() if held.all() else rows[held]))


def size_lists(replicas: Int32Array, sizes: Int64Array) -> Any:
    """Return the sizes of each row's replicas as a list; both are matrices, padded where `replicas` is."""
    held = replicas >= 0
    return pa.ListArray.from_arrays(list_offsets(held), pa.array(sizes[held]))


def list_offsets(held: NDArray[np.bool_]) -> Any:
    """Return where the held values of each row begin, and where the last ends."""
    if held.all():
        return pa.array(np.arange(held.shape[0] + 1, dtype=np.int32) * np.int32(held.shape[1]))
    offsets = np.zeros(held.shape[0] + 1, dtype=np.int32)
    np.cumsum(count_in_row(held), out=offsets[1:])
    return pa.array(offsets)


@attrs.frozen(eq=False)
class RackLists:
    """Hold the rack of each broker: a place in `names` for each of the ascending `ids`."""

    ids: Int32Array
    places: Int64Array
    names: Any

    @classmethod
    def of(cls, view: ClusterView) -> RackLists:
        """Return the racks of a view's brokers; the name of an unknown rack is empty."""
        names = sorted({broker.rack or "" for broker in view.brokers})
        places = np.array([names.index(broker.rack or "") for broker in view.brokers], dtype=np.int64)
        return cls(view.broker_ids, places, pa.array(names, type=pa.string()))

    def lists(self, replicas: Int32Array) -> Any:
        """Return the racks of each row of brokers as a list."""
        held = replicas >= 0
        if len(self.names) == 1:
            names: Any = repeated(self.names[0].as_py(), int(np.count_nonzero(held)))
        else:
            names = self.names.take(pa.array(self.places[broker_rows(self.ids, replicas[held])]))
        return pa.ListArray.from_arrays(list_offsets(held), names)


def repeated(text: str, count: int) -> Any:
    """Return a column of the same text so many times, in a tenth of the time of pyarrow's `repeat`.

    >>> repeated("abc", 2).to_pylist()
    ['abc', 'abc']
    """
    octets = text.encode()
    assert len(octets) * count <= np.iinfo(np.int32).max, (len(octets), count)
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(len(octets))
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets.data), pa.py_buffer(octets * count)])
