"""Start a command faster: pause the garbage collector, avoid pandas, and announce compilation.

What it decides: while a command's modules load, and when it ends, Python looks for no cycles of dead objects: modules
live as long as the process. pyarrow imports pandas with its first array, a third of a second, only to know its types;
a command that runs in this process has none to show it.

Constraints: the library is untouched, only the process of a command is. pandas can still be imported, and pyarrow still
makes its frames.

How: the collector is off until the command is loaded; then all objects move to the generation that is never
searched, and again before the process ends. While pyarrow makes its first value, pandas is not to be found. The first
call of a loop that is not compiled yet takes seconds, a plan by bytes up to a minute: a terminal is told, once.

Example: main() calls pause_collection(), then the command; a report of 15 partitions takes a third less CPU.

Source: Python's gc.freeze; OpenBLAS' README, for its threads; pyarrow 26.0 pandas-shim.pxi, which looks for pandas
once, and again when a frame is made.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

OBJECTS_PER_COLLECTION: Final = 10_000
"""Python's own 700 make the search a fortieth of a report's time."""
MATRIX_THREADS: Final = "OPENBLAS_NUM_THREADS"
COMPILING: Final = "brokerside: compiling once for this installation; the next run starts at once"


def pause_collection() -> None:
    """Stop the search for cycles of dead objects while modules load, or while the process ends."""
    gc.disable()
    gc.freeze()


def resume_collection() -> None:
    """Search for cycles of dead objects from now on, among objects that are yet to come, if that was paused."""
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(OBJECTS_PER_COLLECTION, *gc.get_threshold()[1:])
        gc.enable()


def without_matrix_threads() -> None:
    """Keep numpy from starting a thread a core for products of matrices, unless the user's environment asks for it."""
    os.environ.setdefault(MATRIX_THREADS, "1")


def without_pandas() -> None:
    """Keep pyarrow from importing pandas with its first array; frames can still be made later."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.remove(hidden)


def say_when_compiling() -> None:
    """Tell a terminal, before the first loop is compiled, that this is done once for an installation."""
    # Not at the top: an interrupt is to end in one line before anything of ours but the command's door is loaded.
    from broker.compiled import on_compilation

    def say() -> None:
        if sys.stderr.isatty():
            sys.stderr.write(COMPILING + "\n")
            sys.stderr.flush()

    on_compilation(say)


class _Hidden:
    """Hide pandas from `import`."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
