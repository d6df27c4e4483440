"""`python -m tests.architecture [surface | docs OUT]`: what the house writes about itself.

Without a word, or with `surface`, it writes the snapshot of the public surface anew. `docs OUT` writes the API
reference to the folder OUT and ends with status 1 where pdoc warns.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.architecture import docs, public_api

USAGE = "usage: python -m tests.architecture [surface | docs OUT]"


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    match list(arguments):
        case [] | ["surface"]:
            print(f"written: {public_api.write().name}")
            return 0
        case ["docs", out] if not docs.is_possible():
            print("pdoc is not installed; it comes with the extra dev: pip install -e '.[dev]'", file=sys.stderr)
        case ["docs", out]:
            warnings = docs.build(Path(out), docs.documented_modules())
            print(*(f"warning: {warning}" for warning in warnings), sep="\n", file=sys.stderr)
            print(f"written: {Path(out) / 'index.html'}; warnings: {len(warnings)}")
            return 1 if warnings else 0
        case _:
            print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
