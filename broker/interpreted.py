"""Interpret a kernel as machine code would run it: with Python numbers in the place of numpy's.

An element of a numpy array overflows in its own width and warns; numba computes in 64 bits. So arrays give Python
numbers here, and results that are numpy numbers become Python's; only np.uint64 stays, which wraps around compiled too.
A run that reads and writes more elements than it may stops, and its arrays are again what they were.

Left out: float32 arithmetic; wrap-around at 64 bits of what is compared, divided or shifted right before it is stored:
there a kernel casts by np.int64, which compiled does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, Final, cast

import numpy as np
from attrs import frozen

from broker.block_copy import copy_block

_accesses_left: Final = [0.0]


class _TooLongError(Exception):
    """A run has read and written as much as it may."""


class PythonNumbers(np.ndarray[Any, Any]):
    """A view of an array whose elements are Python numbers; each access counts."""

    def __getitem__(self, key: Any) -> Any:
        """Return a Python number where numpy would return one of its own."""
        _accesses_left[0] -= 1
        if _accesses_left[0] < 0:
            raise _TooLongError
        found = super().__getitem__(key)
        return found.item() if isinstance(found, np.generic) and not isinstance(found, np.uint64) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store a number; one that is too large loses its upper bits, as a Java cast and machine code do."""
        _accesses_left[0] -= 1
        if _accesses_left[0] < 0:
            raise _TooLongError
        try:
            super().__setitem__(key, value)
        except OverflowError:
            super().__setitem__(key, _lower_bits(value, self.dtype))

    def __iter__(self) -> Iterator[Any]:
        """Iterate over Python numbers, or over the rows of a matrix."""
        return (self[index] for index in range(len(self)))


class _Integer:
    """A type of numpy's as kernels use it: a dtype, and a cast that keeps the lower bits of a number."""

    def __init__(self, kind: type[np.integer[Any]]) -> None:
        self.dtype = np.dtype(kind)

    def __call__(self, value: Any) -> Any:
        cast = np.asarray(_lower_bits(int(value), self.dtype), self.dtype)[()]
        return cast if isinstance(cast, np.uint64) else cast.item()


class _Numpy:
    """The module numpy, as kernels use it; the arrays that its functions make give Python numbers."""

    def __getattr__(self, name: str) -> Any:
        """Return numpy's function, its result converted; its integer types as casts; all else as it is."""
        found = getattr(np, name)
        if isinstance(found, type) and issubclass(found, np.integer):
            found = _Integer(found)
            setattr(self, name, found)
            return found
        if isinstance(found, type) or not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            return _converted(found(*arguments, **named))

        setattr(self, name, call)
        return call


_NUMPY: Final = _Numpy()


@frozen
class Run:
    """Whether a run finished; if so, its result, and how many elements it read and wrote."""

    finished: bool
    accesses: int = 0
    result: object = None


class Interpreter:
    """A kernel and its helpers as one Python function that computes with Python numbers."""

    def __init__(self, function: Callable[..., Any], helpers: Sequence[Callable[..., Any]]) -> None:
        linked: list[FunctionType] = []

        def keep(helper: FunctionType) -> FunctionType:
            linked.append(helper)
            return helper

        names = linked_names(function, helpers, keep)
        self._code = FunctionType(function.__code__, names)
        for each in (self._code, *linked):
            if each.__globals__.get("np") is np and each.__code__ is not copy_block.__code__:
                each.__globals__["np"] = _NUMPY

    def run(self, arguments: Sequence[Any], accesses_max: int | None) -> Run:
        """Run the kernel, unless that takes more than `accesses_max` accesses: then its arrays are as they were."""
        arrays = list(_arrays(arguments))
        if accesses_max is None:
            _accesses_left[0], before = float("inf"), []
        elif sum(array.size for array in arrays) > accesses_max:
            return Run(finished=False)
        else:
            _accesses_left[0], before = accesses_max, [array.copy() for array in arrays]
        try:
            with np.errstate(over="ignore"):  # Numbers that a kernel declares to be np.uint64 wrap around.
                result = _result(self._code(*map(_converted, arguments)))
        except _TooLongError:
            for array, former in zip(arrays, before, strict=True):
                if array.flags.writeable:
                    array[...] = former
            return Run(finished=False)
        accesses = 0 if accesses_max is None else accesses_max - int(_accesses_left[0])
        return Run(finished=True, accesses=accesses, result=result)


def linked_names(
    function: Callable[..., object],
    helpers: Sequence[Callable[..., object]],
    make: Callable[[FunctionType], Any],
) -> dict[str, Any]:
    """Return a copy of a kernel's global names with each helper replaced by the result of `make`.

    The helpers see each other so too; the modules themselves keep the functions as they were written.
    """
    assert len({helper.__name__ for helper in helpers}) == len(helpers), "helpers have names of their own"
    names = dict(function.__globals__)
    by_module = {function.__module__: names}
    made = {}
    for helper in helpers:
        own = by_module.setdefault(helper.__module__, dict(helper.__globals__))
        made[helper.__name__] = make(
            cast("FunctionType", helper) if helper is copy_block else FunctionType(helper.__code__, own)
        )
    for own in by_module.values():
        own.update(made)
    return names


def _lower_bits(value: int, dtype: np.dtype[Any]) -> int:
    """Return the number that the lower bits of `value` are in an integer type."""
    bits = 8 * dtype.itemsize
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if dtype.kind == "i" and low >> (bits - 1) else low


def _arrays(values: Sequence[Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays among a kernel's arguments, and in tuples of them."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple):
            yield from _arrays(value)


def _converted(value: Any) -> Any:
    """Return arrays as views that give Python numbers, numpy's numbers as Python's; tuples element by element."""
    if isinstance(value, np.ndarray):
        return value.view(PythonNumbers)
    if isinstance(value, np.generic) and not isinstance(value, np.uint64):
        return value.item()
    return _each(_converted, value) if isinstance(value, tuple) else value


def _result(value: Any) -> Any:
    """Return what a kernel returned with ordinary arrays and Python numbers."""
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    if isinstance(value, np.generic):
        return value.item()
    return _each(_result, value) if isinstance(value, tuple) else value


def _each(convert: Callable[[Any], Any], values: tuple[Any, ...]) -> Any:
    """Return a tuple, or a named tuple, with each value converted."""
    return getattr(values, "_make", tuple)(map(convert, values))
