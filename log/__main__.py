"""`python -m log`: says that there is nothing to run yet."""

from __future__ import annotations

import sys


def main() -> int:
    """Say so; return 2, as nothing was done."""
    print("log has nothing to run yet: `brokerside --help` lists what there is", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
