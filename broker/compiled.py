"""Compile a loop over plain arrays with numba when the loop is first called.

What it decides: when numba is imported and where its machine code is kept. Importing numba takes half a second and
compiling a kernel a second or more, so both wait for the first call: a command that places ten partitions never pays.

A kernel too long to read is cut into helper functions, compiled into it where they are called.
They stand in the kernel's own file: the cache notices a change of that file only.

The machine code is cached beside the source, or in the user's cache directory, so that
every process compiles once in the life of an installation. Where neither can be written
(a read-only image without a home), the kernel is compiled anew in each process instead.

Left out: parallel loops. Spark already keeps every core busy; kernels release the GIL.

Source: numba's `njit(cache=True)`; it raises RuntimeError when it finds no place to cache.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return `function`, compiled at its first call; `__wrapped__` is the plain Python function.

    It takes positional arguments only: numbers and arrays.
    """
    return compiled_with()(function)


def compiled_with(
    *helpers: Callable[..., object], allocates: bool = True
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Return a decorator like `compiled` for a function that calls `helpers`, plain functions of the same module.

    They may call each other, and become one piece of machine code with it. Name them all: one that is not named is
    unknown to the compiler. A function that makes no array can say that it never `allocates`: numba then counts no
    references, which costs a function of many small helpers more than half its time.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @functools.cache
        def machine_code() -> Callable[Parameters, Result]:
            return _compile(function, helpers, allocates)

        @functools.wraps(function)
        def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
            return machine_code()(*arguments, **named)

        return call

    return decorate


def _compile(
    function: Callable[Parameters, Result], helpers: Sequence[Callable[..., object]], allocates: bool
) -> Callable[Parameters, Result]:
    import numba  # Here, as it takes half a second that most commands need not wait.

    options: dict[str, Any] = {"nogil": True} if allocates else {"nogil": True, "_nrt": False}
    # A copy of the module's names, in which the helpers are compiled ones; the module itself keeps the plain ones.
    names = dict(function.__globals__)
    for helper in helpers:
        names[helper.__name__] = numba.njit(forceinline=True, **options)(FunctionType(helper.__code__, names))
    linked = FunctionType(function.__code__, names)
    try:
        return cast("Callable[Parameters, Result]", numba.njit(cache=True, **options)(linked))
    except RuntimeError as refusal:
        if "no locator available" not in str(refusal):
            raise
        return cast("Callable[Parameters, Result]", numba.njit(**options)(linked))
