"""Print the clusters to look at first, read with pandas from the tables of a run.

Example: `python -m spark_analysis.examples.with_pandas brokerside-out`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from spark_analysis.examples.usage import run


def first_clusters(out: Path, count: int = 3) -> pd.DataFrame:
    """Return the `count` clusters of the best ranks, with the share of their leaders that would have to move."""
    clusters = pd.read_parquet(out / "tables" / "clusters", columns=["cluster_id", "placer", "cluster", "rank"])
    leaders = [("scope", "=", "broker"), ("quantity", "=", "leaders")]
    measures = pd.read_parquet(out / "tables" / "measures", filters=leaders)
    joined = clusters.merge(measures, on=["cluster_id", "placer"], validate="one_to_one")
    return joined.nsmallest(count, "rank")[["rank", "cluster", "placer", "moves", "moves_share"]]


def main(out: str) -> None:
    """Print the clusters that rank first in a run, and the share of leaders that each would have to move."""
    sys.stdout.write(first_clusters(Path(out)).round(3).to_string(index=False) + "\n")


if __name__ == "__main__":
    run(main)
