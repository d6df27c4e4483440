"""`python -m log COMMAND PATH...`: the same as `brokerside log`, without Parquet."""

from __future__ import annotations

import sys

from broker.cli import run
from log.cli.commands import log

if __name__ == "__main__":
    sys.exit(run(log, "python -m log"))
