"""Start a command faster: without pandas and threads for matrices; announce compilation on a terminal.

pyarrow imports pandas with its first array, a third of a second, only to know its types; a command that runs in this
process has none to show it. While pyarrow makes its first value, pandas is not to be found; frames can be made later.

Source: OpenBLAS' README, for its threads; pyarrow 26.0 pandas-shim.pxi, which looks for pandas once.
"""

from __future__ import annotations

import os
import sys
from typing import Final

MATRIX_THREADS: Final = "OPENBLAS_NUM_THREADS"
COMPILING: Final = "brokerside: compiling once for this installation; the next run starts at once"


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
    """Announce on a terminal, before the first loop is compiled, that this happens once for an installation."""
    # Not at the top: an interrupt ends in one line before anything else of ours is loaded.
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
