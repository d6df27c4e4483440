"""Give each value of one table a small number, always the same number for the same value.

Numbers are given in the order in which values are first seen, so they are the same in each run of the same search.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value", bound=Hashable)


class Interned(Generic[Value]):
    """Number the values of one table; the numbers stay below 2 ** `bits`."""

    __slots__ = ("_numbers", "limit", "values")

    def __init__(self, bits: int) -> None:
        self._numbers: dict[Value, int] = {}
        self.values: list[Value] = []
        self.limit = 1 << bits

    def number(self, value: Value) -> int:
        """Return the number of a value; a new value gets the next one."""
        known = self._numbers.get(value)
        if known is not None:
            return known
        number = len(self.values)
        assert number < self.limit, f"more than {self.limit} values in one table"
        self._numbers[value] = number
        self.values.append(value)
        return number
