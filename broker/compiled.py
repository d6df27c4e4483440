"""Compile a loop over plain arrays with numba when the loop is first called.

What it decides: when numba is imported and where its machine code is kept. Importing numba takes half a second and
compiling a kernel a second or more, so both wait for the first call: a command that places ten partitions never pays.

A kernel too long to read is cut into helper functions, compiled into it where they are called.
Helpers may stand in another file. Numba's cache notices changes of the kernel's own file only, so the name under which
such a kernel is cached has a digest of those helpers and of the constants that they read: a helper that changed is
compiled anew. The helper `copy_block` (block_copy.py) becomes LLVM's memcpy.

A command can have itself told before its first compilation (compilation.py), so that nobody waits in silence.

The machine code is cached beside the source, or in the user's cache directory, so that
every process compiles once in the life of an installation. Where neither can be written
(a read-only image without a home), the kernel is compiled anew in each process instead.
A module of an archive, as executors of Spark import it, is copied to the user's cache directory first
(kernel_source.py): the archive's own path is new with each run, and numba caches by path.

Left out: parallel loops. Spark already keeps every core busy; kernels release the GIL.

Source: numba's `njit(cache=True)`; it raises RuntimeError when it finds no place to cache.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, ParamSpec, TypeVar, cast

from broker.block_copy import compiled_copy_block, copy_block
from broker.compilation import watch_compilations
from broker.kernel_source import lasting_source

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
    """Return a decorator like `compiled` for a function that calls `helpers`, plain functions of any module.

    They may call each other, and become one piece of machine code with it. Name them all: one that is not named is
    unknown to the compiler, and no two may have one name. A function that makes no array can say that it never
    `allocates`: numba then counts no references, which costs a function of many small helpers more than half its time.
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

    watch_compilations()
    options: dict[str, Any] = {"nogil": True} if allocates else {"nogil": True, "_nrt": False}
    assert len({helper.__name__ for helper in helpers}) == len(helpers), "helpers have names of their own"
    # A copy of each module's names, in which the helpers are compiled ones; the modules themselves keep the plain ones.
    names = dict(function.__globals__)
    by_module = {function.__module__: names}
    linked_helpers = {}
    for helper in helpers:
        if helper is copy_block:
            linked_helpers[helper.__name__] = compiled_copy_block()
            continue
        own = by_module.setdefault(helper.__module__, dict(helper.__globals__))
        linked_helpers[helper.__name__] = numba.njit(forceinline=True, **options)(FunctionType(helper.__code__, own))
    for own in by_module.values():
        own.update(linked_helpers)
    source = lasting_source(function.__code__.co_filename)
    linked = FunctionType(function.__code__ if source is None else function.__code__.replace(co_filename=source), names)
    foreign = [helper for helper in helpers if helper.__module__ != function.__module__]
    if copy_block in foreign:
        foreign.append(compiled_copy_block.__wrapped__)
    if foreign:
        linked.__qualname__ = f"{function.__qualname__}-{_digest(foreign)}"
    try:
        return cast("Callable[Parameters, Result]", numba.njit(cache=source is not None, **options)(linked))
    except RuntimeError as refusal:
        if "no locator available" not in str(refusal):
            raise
        return cast("Callable[Parameters, Result]", numba.njit(**options)(linked))


def _digest(helpers: Sequence[Callable[..., object]]) -> str:
    """Return the digest of what helpers do, as hexadecimal digits: their code, and the constants that they read."""
    found = hashlib.sha256()
    for helper in helpers:
        code = helper.__code__
        read = [(name, helper.__globals__.get(name)) for name in code.co_names]
        constants = [(name, value) for name, value in read if isinstance(value, bool | int | float | str)]
        found.update(repr((helper.__name__, _parts(code), constants)).encode())
    return found.hexdigest()[:16]


def _parts(code: CodeType) -> tuple[object, ...]:
    """Return what a function does, wherever its file lies and whatever its comments say."""
    constants = tuple(_parts(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.co_code, constants, code.co_names, code.co_varnames
