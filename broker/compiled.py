"""Run a loop over plain arrays: interpreted while the work is small, compiled with numba once it is worth it.

Goals, most important first: both ways give the same answer; a small input never waits for a compiler; a large one is
never interpreted for longer than a compilation takes.

How: a kernel is interpreted until it has read and written `INTERPRETED_ACCESSES_MAX` elements of arrays, in all calls
together. The call in which that happens begins again as machine code, on its arrays as they were; one whose arrays have
more elements than are left is compiled at once. Interpreted, every element is a Python number (interpreted.py). Machine
code is cached beside the source, or in the user's cache directory; a module of an archive is copied there first
(kernel_source.py). A kernel may call helpers from other files: the name under which it is cached has a digest of its
helpers and of the constants that they read.

Source: numba's `njit(cache=True)`, which raises RuntimeError when it finds no place to cache; numba.core.event.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, Final, ParamSpec, TypeVar, cast

from broker.block_copy import compiled_copy_block, copy_block
from broker.interpreted import Interpreter, linked_names
from broker.kernel_source import lasting_source

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

INTERPRETED_ACCESSES_MAX: Final = 500_000
"""Elements that an interpreted kernel reads and writes before it is compiled: a third of a second of Python."""

_accesses_max = [INTERPRETED_ACCESSES_MAX]
_on_compilation: Final[list[Callable[[], None]]] = []


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return `function` as a kernel: interpreted or compiled, by the size of its arrays; `__wrapped__` is `function`.

    It takes positional arguments only: numbers, arrays, tuples of them.
    """
    return compiled_with()(function)


def compiled_with(
    *helpers: Callable[..., object], allocates: bool = True
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Return a decorator like `compiled` for a function that calls `helpers`, plain functions of any module.

    Helpers may call each other, and become one piece of machine code with the kernel. Name them all: one that is not
    named is unknown to the compiler, and no two may have one name. A function that makes no array can say that it never
    `allocates`: numba then counts no references, which costs a function of many small helpers more than half its time.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @functools.cache
        def machine_code() -> Callable[Parameters, Result]:
            return _compile(function, helpers, allocates)

        @functools.cache
        def interpreter() -> Interpreter:
            return Interpreter(function, helpers)

        accesses = 0

        @functools.wraps(function)
        def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
            nonlocal accesses
            left = _accesses_max[0] - accesses
            if left >= 0:
                done = interpreter().run(arguments, accesses_max=left)
                if done.finished:
                    accesses += done.accesses
                    return cast("Result", done.result)
                accesses = sys.maxsize  # Machine code, once there is some, serves small calls too.
            code = machine_code()
            if code is function:  # Nothing may be compiled.
                return cast("Result", interpreter().run(arguments, accesses_max=None).result)
            return code(*arguments, **named)

        return call

    return decorate


@contextmanager
def interpreted_at_most(accesses: int) -> Iterator[None]:
    """Interpret each kernel for at most so many reads and writes in the block; -1 compiles it at its first call."""
    before = _accesses_max[0]
    _accesses_max[0] = accesses
    try:
        yield
    finally:
        _accesses_max[0] = before


def on_compilation(notify: Callable[[], None]) -> None:
    """Call `notify` once, before the next kernel is compiled; loading one from numba's cache does not count."""
    _on_compilation[:] = [notify]


@functools.cache
def _watch_compilations() -> None:
    """Register for numba's compile events; numba is loaded by now."""
    from numba.core import event

    class Watch(event.Listener):
        def on_start(self, event: object) -> None:
            if _on_compilation:
                _on_compilation.pop()()

        def on_end(self, event: object) -> None:
            """Ignore the end of a compilation."""

    register: Any = event.register  # Has no types.
    register("numba:compile", Watch())


def _compile(
    function: Callable[Parameters, Result], helpers: Sequence[Callable[..., object]], allocates: bool
) -> Callable[Parameters, Result]:
    """Return the compiled kernel, or `function` itself where NUMBA_DISABLE_JIT forbids to compile."""
    import numba  # Here, as it takes half a second that most commands need not wait.

    if getattr(numba.config, "DISABLE_JIT", False):
        return function
    _watch_compilations()
    options: dict[str, Any] = {"nogil": True} if allocates else {"nogil": True, "_nrt": False}

    def njit(helper: FunctionType) -> Any:
        return compiled_copy_block() if helper is copy_block else numba.njit(forceinline=True, **options)(helper)

    names = linked_names(function, helpers, njit)
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
