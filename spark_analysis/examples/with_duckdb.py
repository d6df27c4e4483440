"""Print how far each placer is from the best possible spread, read with DuckDB from the tables of a run.

Example: `python -m spark_analysis.examples.with_duckdb brokerside-out`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import duckdb

from spark_analysis.examples.usage import run

QUERY: Final = """
    select placer, quantity, count(*) as clusters, round(100 * median(moves_share), 1) as median_percent_to_move
    from read_parquet(?)
    where scope = 'broker'
    group by all
    order by quantity, placer
"""


def distances(out: Path) -> list[tuple[str, str, int, float]]:
    """Return for each placer and quantity the clusters and the median share that would have to move, in per cent."""
    return duckdb.execute(QUERY, [str(out / "tables" / "measures" / "*.parquet")]).fetchall()


def main(out: str) -> None:
    """Print for each placer what percentage of replicas, leaders or bytes the median cluster would have to move."""
    for placer, quantity, clusters, percent in distances(Path(out)):
        sys.stdout.write(f"{placer:<8} {quantity:<8} {clusters} clusters, median {percent} % to move\n")


if __name__ == "__main__":
    run(main)
