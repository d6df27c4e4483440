"""Java's string hash, and the order in which a Java `HashMap` of strings is walked.

Decides in which order Kafka meets racks, members and topics wherever it walks a hash map:
the order reaches the result, because chance is drawn and ties are broken along it.

Goals, most important first
1. The order is Java's for any strings, hashes that collide included.
2. It follows from the keys and the order of insertion alone.

Constraints: a key is a string or None; None stands for Java's null and for an absent
`Optional`, both of hash 0. Keys are put in one at a time; putting one in twice changes nothing.

How
A map is a table of 2^k bins, 16 at first. A key of hash h goes to bin (h ^ h >>> 16) mod
2^k, behind those that are there. The table doubles when it holds more keys than three
quarters of its bins, and also when a ninth key goes to one bin of a table smaller than 64; in
a larger table such a bin becomes a tree (`broker.java_tree_bin`), with an order of its own.
Doubling splits each bin in two, in the order it has; a tree of which six keys or fewer are left
becomes a list again. The walk goes bin by bin.

Example: "Aa" and "BB" have the same hash, 2112, so they stand in the order of insertion:
java_map_order(["BB", "b", "Aa"]) == ("BB", "Aa", "b").

Left out: keys that are neither strings nor None, and removal.

Source: java.util.HashMap, java.util.HashSet and java.lang.String.hashCode, Java 17.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import unpack
from typing import Final, TypeAlias

from broker.cluster import java_string_key
from broker.java_tree_bin import TreeBin, TreeKey

JavaKey: TypeAlias = str | None

_MASK_32: Final = (1 << 32) - 1
_TABLE_SIZE_MIN: Final = 16
_TREE_TABLE_SIZE_MIN: Final = 64  # HashMap.MIN_TREEIFY_CAPACITY: smaller tables double instead of growing trees.
_LIST_KEY_COUNT_MAX: Final = 8  # HashMap.TREEIFY_THRESHOLD: one key more and the bin is too full for a list.
_LIST_AGAIN_KEY_COUNT_MAX: Final = 6  # HashMap.UNTREEIFY_THRESHOLD: a split tree this small is a list again.


def java_string_hash(text: str) -> int:
    """Return `text.hashCode()` of Java, a signed 32-bit number.

    It runs over UTF-16 units, so that a character beyond U+FFFF counts as its two surrogates. Cost: linear.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for unit in unpack(f">{len(units) // 2}H", units):
        code = (31 * code + unit) & _MASK_32
    return code - (1 << 32) if code >> 31 else code


def java_map_order(keys: Iterable[JavaKey]) -> tuple[JavaKey, ...]:
    """Return the keys as a `HashMap` or `HashSet` yields them, filled one by one in the order given. Cost: linear."""
    return _walk(keys, _TABLE_SIZE_MIN)


def java_set_copy_order(keys: Iterable[JavaKey]) -> tuple[JavaKey, ...]:
    """Return the keys as `new HashSet<>(collection)` yields them, the collection walked in the order given.

    It differs from `java_map_order` in the table's first size, which Java takes from the size of the collection
    (duplicates counted). Cost: linear.
    """
    given = list(keys)
    # HashSet asks for max(16, (int) (n / .75f) + 1) bins and HashMap rounds that up to a power of two.
    asked = max(_TABLE_SIZE_MIN, len(given) * 4 // 3 + 1)
    return _walk(given, 1 << (asked - 1).bit_length())


def _walk(keys: Iterable[JavaKey], table_size: int) -> tuple[JavaKey, ...]:
    named: dict[TreeKey, JavaKey] = {}
    bins: dict[int, TreeBin | list[TreeKey]] = {}
    for key in dict.fromkeys(keys):
        tree_key = _tree_key(key)
        named[tree_key] = key
        index = tree_key[0] % table_size
        bin_keys = bins.setdefault(index, [])
        if isinstance(bin_keys, TreeBin):
            bin_keys.add(tree_key)
        else:
            bin_keys.append(tree_key)
            if len(bin_keys) > _LIST_KEY_COUNT_MAX:
                if table_size < _TREE_TABLE_SIZE_MIN:
                    table_size, bins = 2 * table_size, _doubled(bins, table_size)
                else:
                    bins[index] = TreeBin.of(bin_keys)
        if len(named) * 4 > table_size * 3:
            table_size, bins = 2 * table_size, _doubled(bins, table_size)
    return tuple(named[tree_key] for index in sorted(bins) for tree_key in _in_order(bins[index]))


def _doubled(bins: dict[int, TreeBin | list[TreeKey]], table_size: int) -> dict[int, TreeBin | list[TreeKey]]:
    """Return the bins of a table twice as large as `table_size`."""
    result: dict[int, TreeBin | list[TreeKey]] = {}
    for index, bin_keys in bins.items():
        ordered = _in_order(bin_keys)
        for half in (index, index + table_size):
            kept = [key for key in ordered if key[0] % (2 * table_size) == half]
            if not isinstance(bin_keys, TreeBin) or len(kept) <= _LIST_AGAIN_KEY_COUNT_MAX:
                result[half] = kept
            else:
                # A tree that loses no key is kept as it is; the halves of one that is cut are made anew.
                result[half] = bin_keys if len(kept) == len(ordered) else TreeBin.of(kept)
    return result


def _in_order(bin_keys: TreeBin | list[TreeKey]) -> list[TreeKey]:
    return bin_keys.order if isinstance(bin_keys, TreeBin) else bin_keys


def _tree_key(key: JavaKey) -> TreeKey:
    if key is None:
        return (0, False, b"")
    code = java_string_hash(key)
    return (code ^ (code & _MASK_32) >> 16, True, java_string_key(key))
