"""Order file names as the hash map does in which kafka-dump-log gathers its problems by file.

What it decides: which file's problems come first where several files have some.

Constraints: the order is a function of the calls that fill the map, a name for each call, repeated names included:
both maps may grow at a call that adds nothing.

How: both maps have 16 bins at first, a power of two always, and put a name into the bin that the lowest bits of its
mixed hash name. Java's `computeIfAbsent` grows the table when it is called with more than three quarters of it used,
and puts a new name first in its bin. Scala's `put` grows it when one more name would reach three quarters, and keeps
a bin in the order of the signed hashes.

Example: "Aa" and "BB" have the same hash.

    >>> java_map_order(["Aa", "BB", "a"]), scala_map_order(["Aa", "BB", "a"])
    (['BB', 'Aa', 'a'], ['Aa', 'BB', 'a'])

Left out: Java's trees, which need nine names in one bin of a table of 64.

Source: java.util.HashMap of Java 17; scala.collection.mutable.HashMap of Scala 2.13.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from broker.java.string_hash import java_string_hash

TABLE_SIZE_MIN: Final = 16


def java_map_order(calls: Iterable[str]) -> list[str]:
    """Return the distinct names in the order of a Java HashMap that `computeIfAbsent` filled."""
    size, names = TABLE_SIZE_MIN, list[str]()
    for name in calls:
        if len(names) > size * 3 // 4:
            size *= 2
        if name not in names:
            names.insert(0, name)
    # Growing keeps the order inside a bin, and so does a sort by bin.
    return sorted(names, key=lambda name: _mixed(name) % size)


def scala_map_order(calls: Iterable[str]) -> list[str]:
    """Return the distinct names in the order of a Scala mutable.HashMap that `put` filled."""
    size, names = TABLE_SIZE_MIN, list[str]()
    for name in calls:
        if len(names) + 1 >= size * 3 // 4:
            size *= 2
        if name not in names:
            names.append(name)
    return sorted(names, key=lambda name: (_mixed(name) % size, _mixed(name)))


def _mixed(name: str) -> int:
    """Return Java's hash of a name with its upper half mixed into its lower one, signed."""
    code = java_string_hash(name)
    return code ^ (code % 2**32 >> 16)
