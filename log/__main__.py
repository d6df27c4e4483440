"""Run `brokerside log` as `python -m log`, without Parquet tables."""

from __future__ import annotations

import sys

from broker.cli import run
from log.cli.main import log

if __name__ == "__main__":
    sys.exit(run(log, "python -m log"))
