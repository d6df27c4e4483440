"""Compute Java's string hash, and the iteration order of a Java `HashMap` of strings.

Example: "Aa" and "BB" collide, so they stand in the order of insertion:

    >>> java_string_hash("Aa"), java_string_hash("BB")
    (2112, 2112)
    >>> java_map_order(["BB", "b", "Aa"])
    ('BB', 'Aa', 'b')

Source: java.util.HashMap, java.util.HashSet and java.lang.String.hashCode, Java 17.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import unpack
from typing import Final, TypeAlias

from broker.java.hash_table import TABLE_SIZE_MIN, HashTable
from broker.java.tree_bin import TreeKey

JavaKey: TypeAlias = str | None

_MASK_32: Final = (1 << 32) - 1


def java_string_key(text: str) -> bytes:
    """Return a sort key that orders strings as Java's String.compareTo does, by UTF-16 unit."""
    return text.encode("utf-16-be", "surrogatepass")


def java_string_hash(text: str) -> int:
    """Return Java's `text.hashCode()`, a signed 32-bit number.

    It runs over UTF-16 units, so that a character beyond U+FFFF counts as its two surrogates. Cost: linear.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for unit in unpack(f">{len(units) // 2}H", units):
        code = (31 * code + unit) & _MASK_32
    return code - (1 << 32) if code >> 31 else code


def java_map_order(keys: Iterable[JavaKey]) -> tuple[JavaKey, ...]:
    """Return the keys in the iteration order of a `HashMap` or `HashSet` filled in the given order. Cost: linear."""
    return _walk(keys, TABLE_SIZE_MIN)


def java_set_copy_order(keys: Iterable[JavaKey]) -> tuple[JavaKey, ...]:
    """Return the keys in the order of `new HashSet<>(keys)`; `keys` iterates in the given order.

    It differs from `java_map_order` in the table's first size, which Java takes from the size of the collection
    (duplicates counted). Cost: linear.
    """
    given = list(keys)
    return _walk(given, copied_table_size(len(given)))


def copied_table_size(key_count: int) -> int:
    """Return the bins of `new HashSet<>(keys)`: max(16, (int) (n / .75f) + 1), rounded up to a power of two."""
    return 1 << (max(TABLE_SIZE_MIN, key_count * 4 // 3 + 1) - 1).bit_length()


def _walk(keys: Iterable[JavaKey], table_size: int) -> tuple[JavaKey, ...]:
    named = {_tree_key(key): key for key in dict.fromkeys(keys)}
    table = HashTable(table_size)
    for tree_key in named:
        table.add(tree_key)
    return tuple(named[tree_key] for tree_key in table)


def _tree_key(key: JavaKey) -> TreeKey:
    if key is None:
        return (0, False, b"")
    code = java_string_hash(key)
    return (code ^ (code & _MASK_32) >> 16, True, java_string_key(key))
