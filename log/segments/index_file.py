"""Store and search the entries of an offset or time index in a preallocated file.

A new file is reserved at the largest size, and full of zeros. An index that was there is taken to be full to its end:
how many entries were valid before a crash is not stored, so that recovery has to rebuild it. Keys that only grow are
searched by bisection. On damaged ones Kafka's search still ends somewhere, and where depends on its every step: it
first looks whether the target lies in the last 8 KiB. `slot_at_most` takes those steps.

Source: Kafka storage/org.apache.kafka.storage.internals.log.AbstractIndex, 4.0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, ClassVar, Final, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from log.errors import CorruptIndexError, IllegalArgumentError, IndexOffsetOverflowError
from log.storage.protocol import Buffer, Storage

RELATIVE_OFFSET_MAX: Final = 2**31 - 1
"""How far an entry's offset may lie above the base offset: it is kept in a signed 32-bit number."""

WARM_SIZE_BYTES: Final = 8192
"""The end of an index that Kafka searches first, as it hopes to find it in the page cache."""

Int64Array: TypeAlias = npt.NDArray[np.int64]
IntArray: TypeAlias = npt.NDArray[Any]


@attrs.frozen(eq=False)
class IndexColumns:
    """Hold decoded entries: keys and values as arrays, and whether the keys are non-negative and ascend."""

    keys: array[int]
    values: array[int]
    grows: bool


class IndexFile(ABC):
    """Store entries of one size in a file: the base class of the offset index and the time index."""

    ENTRY: ClassVar[np.dtype[np.void]]
    """The fields `key` and `value` of an entry, big-endian."""

    def __init__(self, storage: Storage, path: str, base_offset: int, size_bytes_max: int) -> None:
        self._storage = storage
        self.size_bytes_max = size_bytes_max
        self._columns: IndexColumns | None = None
        self._arrays: tuple[IntArray, IntArray] | None = None
        self.path = path
        self.base_offset = base_offset
        is_new = not storage.exists(path)
        if is_new and size_bytes_max < self.entry_size_bytes:
            raise IllegalArgumentError(f"{path}: {size_bytes_max} bytes have no room for an index entry")
        self._file = storage.open(path, create=True)
        if is_new:
            self._file.truncate(self._whole_entries(size_bytes_max))
        self.entry_count_max = self._file.size_bytes // self.entry_size_bytes
        self.entry_count = 0 if is_new else self.entry_count_max

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r}, {self.entry_count} entries)"

    @property
    def entry_size_bytes(self) -> int:
        """Return the size of one entry in bytes."""
        return self.ENTRY.itemsize

    @property
    def is_full(self) -> bool:
        """Return whether no entry may be added."""
        return self.entry_count >= self.entry_count_max

    @property
    def size_bytes(self) -> int:
        """Return the size of the valid entries in bytes."""
        return self.entry_count * self.entry_size_bytes

    @property
    def file_size_bytes(self) -> int:
        """Return the size of the file in bytes, including the reserved rest."""
        return self._file.size_bytes

    def relative(self, offset: int) -> int:
        """Return `offset` minus the base offset; raise IndexOffsetOverflowError if that needs more than 31 bits."""
        relative_offset = offset - self.base_offset
        if not 0 <= relative_offset <= RELATIVE_OFFSET_MAX:
            raise IndexOffsetOverflowError(
                f"{self.path}: offset {offset} is not within {RELATIVE_OFFSET_MAX} above the base offset "
                f"{self.base_offset}"
            )
        return relative_offset

    @abstractmethod
    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`."""

    def reset(self) -> None:
        """Drop all entries and make room for the largest size again; the file grows as entries come."""
        self._keep(0)
        self._file.truncate(0)
        self.entry_count_max = self._whole_entries(self.size_bytes_max) // self.entry_size_bytes

    def resize(self, size_bytes: int) -> bool:
        """Resize the file, rounded down to whole entries; return whether the size changed."""
        wanted = self._whole_entries(size_bytes)
        self.entry_count_max = wanted // self.entry_size_bytes
        if wanted == self._file.size_bytes:
            return False
        self._file.truncate(wanted)
        return True

    def trim(self) -> None:
        """Cut the reserved rest off the file."""
        self.resize(self.size_bytes)

    def flush(self) -> None:
        """Make the entries durable."""
        self._file.sync()

    def rename(self, path: str) -> None:
        """Rename the file within its directory."""
        self._storage.rename(self.path, path)
        self.path = path

    def close(self) -> None:
        """Close the file as it is, with its reserved rest."""
        self._file.close()

    def remove(self) -> bool:
        """Close and remove the file; return whether it existed."""
        self._file.close()
        is_there = self._storage.exists(self.path)
        if is_there:
            self._storage.remove(self.path)
        return is_there

    def check_invariants(self) -> None:
        """Assert the invariants of the sizes between calls; entries stay unchecked, as recovery rebuilds them."""
        assert 0 <= self.entry_count <= self.entry_count_max, self
        assert self.entry_count_max >= self.file_size_bytes // self.entry_size_bytes, self
        columns = self._columns
        assert columns is None or len(columns.keys) == len(columns.values) == self.entry_count, self

    def _whole_entries(self, size_bytes: int) -> int:
        return size_bytes - size_bytes % self.entry_size_bytes

    def _entry(self, slot: int) -> tuple[int, int]:
        """Return key and value of one entry, read from the file."""
        return self._pair(np.frombuffer(self._read(slot, slot + 1), self.ENTRY)[0])

    def _add(self, entry: bytes, key: int, value: int) -> None:
        """Write an entry behind the others."""
        count = self.entry_count
        assert count < self.entry_count_max, (count, self.entry_count_max)
        self._file.write_at(count * len(entry), entry)
        self.entry_count = count + 1
        self._arrays = None
        if self._columns is not None:
            self._columns.keys.append(key)
            self._columns.values.append(value)

    def _extend(self, keys: Int64Array, values: Int64Array) -> None:
        """Write entries behind the others, all at once."""
        count = self.entry_count
        assert count + len(keys) <= self.entry_count_max, (count, len(keys), self.entry_count_max)
        entries = np.empty(len(keys), self.ENTRY)
        entries["key"], entries["value"] = keys, values
        self._file.write_at(count * self.entry_size_bytes, entries.tobytes())
        self.entry_count = count + len(keys)
        self._arrays = None
        if self._columns is not None:
            self._columns.keys.extend(keys.tolist())
            self._columns.values.extend(values.tolist())

    def _keep(self, entry_count: int) -> None:
        """Drop all but the first entries; their bytes stay in the file until it is trimmed."""
        assert 0 <= entry_count <= self.entry_count, (entry_count, self.entry_count)
        self.entry_count = entry_count
        self._columns = self._arrays = None

    def _search(self, key: int) -> int:
        """Return the slot of the largest key that is at most `key`, or -1, as Kafka finds it."""
        if not self.entry_count:
            return -1  # As in every small segment: nothing is worth being decoded.
        columns = self._decoded()
        if columns.grows:
            return bisect_right(columns.keys, key) - 1
        return slot_at_most(columns.keys, key, self._warm_entry_count)

    @property
    def _warm_entry_count(self) -> int:
        return WARM_SIZE_BYTES // self.entry_size_bytes

    def _decoded(self) -> IndexColumns:
        """Return the valid entries as columns, decoded at the first call."""
        if self._columns is None:
            keys, values = self._decoded_arrays()
            grows = bool(np.all(keys[1:] > keys[:-1])) and (not len(keys) or keys[0] >= 0)
            self._columns = IndexColumns(_python_array(keys), _python_array(values), grows)
        return self._columns

    def _decoded_arrays(self) -> tuple[IntArray, IntArray]:
        """Return the valid entries as arrays of machine numbers, which nobody may change."""
        if self._arrays is None:
            if self._columns is not None:
                self._arrays = np.array(self._columns.keys), np.array(self._columns.values)
            else:
                self._arrays = decoded_entries(self._read(0, self.entry_count), self.ENTRY)
        return self._arrays

    def _read(self, start_slot: int, end_slot: int) -> bytes:
        size_bytes = self.entry_size_bytes
        return self._file.read_at(start_slot * size_bytes, (end_slot - start_slot) * size_bytes)

    @staticmethod
    def _pair(entry: np.void) -> tuple[int, int]:
        return int(entry["key"]), int(entry["value"])


def slot_at_most(keys: Sequence[int], key: int, warm_entry_count: int) -> int:
    """Return the slot of the largest of `keys` that is at most `key`, or -1, by Kafka's search steps.

    On keys that only grow the steps do not matter; on others they decide. Cost: logarithmic.
    """
    if not keys:
        return -1
    first_warm = max(0, len(keys) - 1 - warm_entry_count)
    if keys[first_warm] < key:
        low, high = first_warm, len(keys) - 1
    elif keys[0] > key:
        return -1
    else:
        low, high = 0, first_warm
    while low < high:
        middle = (low + high + 1) // 2
        if keys[middle] == key:
            return middle
        low, high = (low, middle - 1) if keys[middle] > key else (middle, high)
    return low


def decoded_entries(data: Buffer, entry: np.dtype[np.void]) -> tuple[IntArray, IntArray]:
    """Return the keys and values of the whole entries in `data`, in native byte order."""
    entries = np.frombuffer(data, dtype=entry, count=len(data) // entry.itemsize)
    key, value = entries["key"], entries["value"]
    return key.astype(key.dtype.newbyteorder("=")), value.astype(value.dtype.newbyteorder("="))


def _python_array(numbers: IntArray) -> array[int]:
    made: array[int] = array("q" if numbers.dtype.itemsize == 8 else "i")
    made.frombytes(numbers.tobytes())
    return made


def check_index_size(size_bytes: int, entry_size_bytes: int, *, source: str) -> None:
    """Raise CorruptIndexError unless an index holds whole entries only."""
    if size_bytes % entry_size_bytes:
        raise CorruptIndexError(f"has {size_bytes} bytes, which is no multiple of {entry_size_bytes}", source=source)
