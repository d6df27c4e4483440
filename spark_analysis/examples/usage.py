"""Call an example's `main` with the arguments of its command line, or print a line of usage.

Example: `run(main)` at the end of a program whose `main(dumps: str, out: str)` takes two arguments.

Source: ours.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path


def run(main: Callable[..., None]) -> None:
    """Call `main` with the command line's arguments; print usage and exit with status 2 if their number is wrong."""
    signature, words = inspect.signature(main), sys.argv[1:]
    try:
        signature.bind(*words)
    except TypeError:
        names = [
            each.name.upper() if each.default is each.empty else f"[{each.name.upper()}]"
            for each in signature.parameters.values()
        ]
        sys.stderr.write(f"usage: {Path(sys.argv[0]).name} {' '.join(names)}\n")
        sys.exit(2)
    main(*words)
