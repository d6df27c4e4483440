"""Compute the iteration order of a Java `HashMap` for many keys at once: strings or Kafka's 128-bit ids.

How: as long as no bin ever holds nine keys, a bin is a list in the order of insertion, and doubling the table
keeps that order; so the walk is a stable sort by bin of the last table. Whether some bin held nine is seen by
counting the bins of each table that the map grew through; if so, a `broker.java.hash_table.HashTable` is filled key
by key.

Cost: linear in keys, times their length.

Source: java.util.HashMap and org.apache.kafka.common.Uuid, 4.0, Java 17.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from broker.java.hash_table import TABLE_SIZE_MIN, HashTable
from broker.java.string_hash import copied_table_size, java_string_hash, java_string_key
from broker.java.tree_bin import TreeKey

_LIST_KEY_COUNT_MAX: Final = 8  # HashMap.TREEIFY_THRESHOLD, as in `broker.java.hash_table`.
_COLUMNS_COUNT_MIN: Final = 24  # Fewer strings are hashed about as fast one by one.

UInt32Array = NDArray[np.uint32]


def string_places(names: Sequence[str], *, copied: bool = False) -> NDArray[np.int64]:
    """Return the indices of these strings in a HashMap's order, filled in turn; `copied`: a set from a collection."""
    return _places(string_hashes(names), _table_size(names, copied), lambda: [java_string_key(name) for name in names])


def uuid_places(ids: Sequence[bytes], *, copied: bool = False) -> NDArray[np.int64]:
    """Return the indices of these 16-byte ids in a HashMap's order; `copied`: a set built from a collection."""
    return _places(uuid_hashes(ids), _table_size(ids, copied), lambda: [uuid_key(one) for one in ids])


def _table_size(keys: Sequence[object], copied: bool) -> int:
    return copied_table_size(len(keys)) if copied else TABLE_SIZE_MIN


def uuid_hashes(ids: Sequence[bytes]) -> UInt32Array:
    """Return Java's `hashCode()` of each 16-byte id as uint32[ids]."""
    halves = np.frombuffer(b"".join(ids), ">u8").reshape(-1, 2)
    mixed = halves[:, 0] ^ halves[:, 1]
    codes: UInt32Array = ((mixed >> np.uint64(32)) ^ (mixed & np.uint64(0xFFFF_FFFF))).astype(np.uint32)
    return codes


def uuid_key(uuid: bytes) -> bytes:
    """Return a sort key that orders ids as Kafka's `Uuid.compareTo` does: as two signed 64-bit numbers."""
    assert len(uuid) == 16, uuid
    return bytes((uuid[0] ^ 0x80, *uuid[1:8], uuid[8] ^ 0x80, *uuid[9:]))


def string_hashes(names: Sequence[str]) -> UInt32Array:
    """Return Java's `hashCode()` of each string as uint32[names]."""
    if len(names) < _COLUMNS_COUNT_MIN:
        return np.array([java_string_hash(name) % 2**32 for name in names], np.uint32)
    joined = "".join(names)
    if joined.isascii():
        lengths = np.fromiter(map(len, names), np.int64, count=len(names))
        units = np.frombuffer(joined.encode("ascii"), np.uint8)
    else:
        encoded = [java_string_key(name) for name in names]
        lengths = np.array([len(one) // 2 for one in encoded], np.int64)
        units = np.frombuffer(b"".join(encoded), ">u2")
    return _hashes(units.astype(np.uint32), lengths)


def _hashes(units: UInt32Array, lengths: NDArray[np.int64]) -> UInt32Array:
    """Return Java's hash of each string, from the UTF-16 units of all and the length of each.

    All strings, the longest first, take in their next unit together.
    """
    longest_first = np.argsort(-lengths, kind="stable")
    starts = (lengths.cumsum() - lengths)[longest_first]
    counts = len(lengths) - np.searchsorted(np.sort(lengths), np.arange(lengths.max()), side="right")
    codes = np.zeros(len(lengths), np.uint32)
    for place, count in enumerate(counts.tolist()):
        codes[:count] = codes[:count] * np.uint32(31) + units[starts[:count] + place]
    found = np.empty_like(codes)
    found[longest_first] = codes
    return found


def _places(codes: UInt32Array, table_size: int, keys: Callable[[], list[bytes]]) -> NDArray[np.int64]:
    spread = codes ^ (codes >> np.uint32(16))
    found = _short_table_places(spread, table_size)
    return _walked(spread, table_size, keys()) if found is None else found


def _short_table_places(spread: UInt32Array, table_size: int) -> NDArray[np.int64] | None:
    """Return the order when all bins of all tables are lists; None when some bin ever holds nine keys."""
    while True:
        # The key that makes the table grow is still put into the smaller one.
        present = spread[: table_size * 3 // 4 + 1] & np.uint32(table_size - 1)
        if np.bincount(present, minlength=1).max() > _LIST_KEY_COUNT_MAX:
            return None
        if len(spread) * 4 <= table_size * 3:
            return np.argsort(present, kind="stable")
        table_size *= 2


def _walked(spread: UInt32Array, table_size: int, keys: Sequence[bytes]) -> NDArray[np.int64]:
    # Signed, as a tree compares hashes before it compares keys.
    tree_keys: list[TreeKey] = [
        (code, True, key) for code, key in zip(spread.view(np.int32).tolist(), keys, strict=True)
    ]
    place_of = {key: place for place, key in enumerate(tree_keys)}
    table = HashTable(table_size)
    for key in tree_keys:
        table.add(key)
    return np.array([place_of[key] for key in table], np.int64)
