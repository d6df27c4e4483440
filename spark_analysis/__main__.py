"""Run `python -m spark_analysis`, the same as the `brokerside` command."""

from __future__ import annotations

from spark_analysis.cli import main

if __name__ == "__main__":
    main()
