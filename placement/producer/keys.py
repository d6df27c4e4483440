"""Choose the partition of a record's key: murmur2, as Kafka's producers hash.

    >>> murmur2(b"kafka")
    -798503068
    >>> partitions_of_keys(KeyColumn.of([b"kafka", b"", b"21"]), 3)
    array([1, 0, 0], dtype=int32)

Source: org.apache.kafka.common.utils.Utils.murmur2 and BuiltInPartitioner.partitionForKey, 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from broker.cluster import Int32Array
from broker.compiled import compiled
from broker.errors import DivisionByZeroError, UsageError
from broker.ids import PartitionId

ByteArray: TypeAlias = npt.NDArray[np.uint8]
OffsetArray: TypeAlias = npt.NDArray[np.int64]

POSITIVE_MASK: Final = 0x7FFFFFFF
"""Clears the sign bit of a 32-bit number: what Kafka's `Utils.toPositive` does."""

_MASK_32: Final = 0xFFFFFFFF
MURMUR_SEED: Final = 0x9747B28C
MURMUR_MULTIPLIER: Final = 0x5BD1E995
MURMUR_SHIFT: Final = 24


@attrs.frozen(eq=False)
class KeyColumn:
    """Hold keys one after the other, as in an Arrow or Parquet binary column.

    `data` is uint8[bytes]; `offsets` is int64[keys + 1], and key i is `data[offsets[i]:offsets[i + 1]]`.
    Raises UsageError unless the offsets rise from 0 or more to at most the size of the data.
    """

    data: ByteArray
    offsets: OffsetArray

    def __attrs_post_init__(self) -> None:
        offsets = self.offsets
        if offsets.ndim != 1 or len(offsets) == 0 or offsets.dtype != np.int64 or self.data.dtype != np.uint8:
            raise UsageError("a key column needs uint8 data and int64 offsets, one more than there are keys")
        if offsets[0] < 0 or offsets[-1] > len(self.data) or (np.diff(offsets) < 0).any():
            raise UsageError(f"the offsets of a key column must rise within its {len(self.data)} bytes of data")

    @classmethod
    def of(cls, keys: Iterable[bytes]) -> Self:
        """Return the column of these keys."""
        listed = list(keys)
        sizes = np.fromiter(map(len, listed), np.int64, len(listed))
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
        return cls(np.frombuffer(b"".join(listed), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1


def murmur2(key: bytes) -> int:
    """Return Kafka's murmur2 of `key`, a signed 32-bit number. Cost: linear in its size."""
    state = (MURMUR_SEED ^ len(key)) & _MASK_32
    whole_size = len(key) & ~3
    for start in range(0, whole_size, 4):
        word = int.from_bytes(key[start : start + 4], "little") * MURMUR_MULTIPLIER & _MASK_32
        word = (word ^ word >> MURMUR_SHIFT) * MURMUR_MULTIPLIER & _MASK_32
        state = state * MURMUR_MULTIPLIER & _MASK_32 ^ word
    if whole_size < len(key):
        state = (state ^ int.from_bytes(key[whole_size:], "little")) * MURMUR_MULTIPLIER & _MASK_32
    state = (state ^ state >> 13) * MURMUR_MULTIPLIER & _MASK_32
    state ^= state >> 15
    return state - (1 << 32) if state >> 31 else state


def murmur2_many(keys: KeyColumn) -> Int32Array:
    """Return the murmur2 of each key, int32[keys]."""
    hashes = np.empty(len(keys), np.int32)
    murmur2_columns(np.ascontiguousarray(keys.data), keys.offsets, hashes)
    return hashes


@compiled
def murmur2_columns(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], hashes: Int32Array) -> None:
    """Write the murmur2 of key i, `data[offsets[i]:offsets[i + 1]]`, to `hashes[i]`.

    The offsets must rise within the data; the caller has seen to that.
    """
    multiplier = np.uint32(MURMUR_MULTIPLIER)
    for index in range(len(hashes)):
        start, end = offsets[index], offsets[index + 1]
        state = np.uint32(MURMUR_SEED) ^ np.uint32(end - start)
        position = start
        while position + 4 <= end:
            word = np.uint32(data[position]) | np.uint32(data[position + 1]) << np.uint32(8)
            word |= np.uint32(data[position + 2]) << np.uint32(16) | np.uint32(data[position + 3]) << np.uint32(24)
            word = np.uint32(word * multiplier)
            word = np.uint32((word ^ word >> np.uint32(MURMUR_SHIFT)) * multiplier)
            state = np.uint32(np.uint32(state * multiplier) ^ word)
            position += 4
        if position < end:
            shift = np.uint32(0)
            while position < end:
                state ^= np.uint32(data[position]) << shift
                shift += np.uint32(8)
                position += 1
            state = np.uint32(state * multiplier)
        state = np.uint32((state ^ state >> np.uint32(13)) * multiplier)
        hashes[index] = np.int32(state ^ state >> np.uint32(15))


def partition_of_key(key: bytes, partition_count: int) -> PartitionId:
    """Return the partition to which the producer sends `key`.

    Raises DivisionByZeroError, as Java does, when there are no partitions, and UsageError below that.
    """
    return PartitionId((murmur2(key) & POSITIVE_MASK) % usable(partition_count))


def partitions_of_keys(keys: KeyColumn, partition_count: int) -> Int32Array:
    """Return the partition of each key, int32[keys]; raise as `partition_of_key`."""
    return (murmur2_many(keys) & np.int32(POSITIVE_MASK)) % np.int32(usable(partition_count))


def usable(partition_count: int) -> int:
    """Return a number of partitions; raise DivisionByZeroError for 0, as Java does, and UsageError below that."""
    if partition_count == 0:
        raise DivisionByZeroError("/ by zero")
    if not 0 < partition_count <= POSITIVE_MASK:
        raise UsageError(f"the number of partitions is {partition_count}; allowed are 1 to {POSITIVE_MASK}")
    return partition_count
