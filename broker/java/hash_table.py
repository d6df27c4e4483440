"""Model the table of a Java `HashMap` or `HashSet`: bins grow, become trees or lists, and lose keys.

Source: java.util.HashMap (putVal, computeIfAbsent, removeNode, resize, treeifyBin), Java 17.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from broker.java.tree_bin import TreeBin, TreeKey

TABLE_SIZE_MIN: Final = 16
_TREE_TABLE_SIZE_MIN: Final = 64  # HashMap.MIN_TREEIFY_CAPACITY: smaller tables double instead of growing trees.
_LIST_KEY_COUNT_MAX: Final = 8  # HashMap.TREEIFY_THRESHOLD: one key more and the bin is too full for a list.
_LIST_AGAIN_KEY_COUNT_MAX: Final = 6  # HashMap.UNTREEIFY_THRESHOLD: a split tree this small is a list again.


@attrs.define(eq=False)
class HashTable:
    """Hold the non-empty bins by index, and the number of keys in all bins."""

    table_size: int = TABLE_SIZE_MIN
    key_count: int = 0
    bins: dict[int, TreeBin | list[TreeKey]] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return self.key_count

    def __iter__(self) -> Iterator[TreeKey]:
        return (key for index in sorted(self.bins) for key in _in_order(self.bins[index]))

    def add(self, key: TreeKey) -> None:
        """Insert a key that is absent."""
        index = key[0] % self.table_size
        bin_keys = self.bins.setdefault(index, [])
        if isinstance(bin_keys, TreeBin):
            bin_keys.add(key)
        else:
            bin_keys.append(key)
            if len(bin_keys) > _LIST_KEY_COUNT_MAX:
                self._make_tree(index, bin_keys)
        self.key_count += 1
        if self._is_over_full():
            self._double()

    def add_first(self, key: TreeKey) -> None:
        """Insert a key that is absent as `computeIfAbsent` does: in front of its bin, once the table has grown."""
        if self._is_over_full():
            self._double()
        index = key[0] % self.table_size
        bin_keys = self.bins.setdefault(index, [])
        if isinstance(bin_keys, TreeBin):
            bin_keys.add(key)
        else:
            bin_keys.insert(0, key)
            if len(bin_keys) >= _LIST_KEY_COUNT_MAX:  # Java counts the keys without the new one, and asks for seven.
                self._make_tree(index, bin_keys)
        self.key_count += 1

    def remove(self, key: TreeKey) -> None:
        """Remove a key that is present."""
        index = key[0] % self.table_size
        bin_keys = self.bins[index]
        if isinstance(bin_keys, list):
            bin_keys.remove(key)
        elif not bin_keys.remove(key):
            self.bins[index] = bin_keys.order
        if not _in_order(bin_keys):
            del self.bins[index]
        self.key_count -= 1

    def first(self) -> TreeKey:
        """Return the first key of the iteration order. Cost: the number of non-empty bins."""
        return _in_order(self.bins[min(self.bins)])[0]

    def _is_over_full(self) -> bool:
        return self.key_count * 4 > self.table_size * 3

    def _make_tree(self, index: int, bin_keys: list[TreeKey]) -> None:
        if self.table_size < _TREE_TABLE_SIZE_MIN:
            self._double()
        else:
            self.bins[index] = TreeBin.of(bin_keys)

    def _double(self) -> None:
        halves: dict[int, TreeBin | list[TreeKey]] = {}
        for index, bin_keys in self.bins.items():
            ordered = _in_order(bin_keys)
            for half in (index, index + self.table_size):
                kept = [key for key in ordered if key[0] % (2 * self.table_size) == half]
                if not isinstance(bin_keys, TreeBin) or len(kept) <= _LIST_AGAIN_KEY_COUNT_MAX:
                    if kept:
                        halves[half] = kept
                else:
                    # A tree that loses no key is kept as it is; the halves of one that is cut are made anew.
                    halves[half] = bin_keys if len(kept) == len(ordered) else TreeBin.of(kept)
        self.table_size, self.bins = 2 * self.table_size, halves


def _in_order(bin_keys: TreeBin | list[TreeKey]) -> list[TreeKey]:
    return bin_keys.order if isinstance(bin_keys, TreeBin) else bin_keys
