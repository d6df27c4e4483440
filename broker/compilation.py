"""Call a function before the first loop is compiled, so that a command can say what it waits for.

What it decides: when the call happens: numba finds no machine code in its cache and begins to compile. That takes a
second or more for each loop, up to a minute for the many of a plan by bytes.

Constraints: one call for each time that a function is named; a loop found in the cache calls nothing.

Example: tell_of_compilation(lambda: print("compiling")) before a command, which then prints at most one line.

Left out: how long it takes, which nobody knows beforehand.

Source: numba 0.68 numba.core.event, "numba:compile".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

_TELLING: Final[list[Callable[[], None]]] = []


def tell_of_compilation(tell: Callable[[], None]) -> None:
    """Call `tell` once, before the next loop is compiled; a loop that is cached is not compiled."""
    _TELLING[:] = [tell]


@functools.cache
def watch_compilations() -> None:
    """Let numba, which is loaded, call what waits for the next compilation."""
    from numba.core import event

    class Watch(event.Listener):
        def on_start(self, event: object) -> None:
            if _TELLING:
                _TELLING.pop()()

        def on_end(self, event: object) -> None:
            """Ignore the end of a compilation."""

    register: Any = event.register  # Has no types.
    register("numba:compile", Watch())
