"""`python -m placement TOPIC...`: the same as `brokerside assign`."""

from __future__ import annotations

import sys

from broker.cli import run
from placement.cli import assign

if __name__ == "__main__":
    sys.exit(run(assign, "python -m placement"))
