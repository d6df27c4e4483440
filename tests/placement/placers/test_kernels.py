"""The compiled loops: when numba is imported, and the counts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from broker.errors import UsageError
from placement.placers.broker_columns import PlacementCalls


def test_importing_the_placers_does_not_import_numba() -> None:
    check = (
        "import placement.placers.classic, placement.placers.striped, placement.balance.topic_spread, sys;"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_more_than_is_ever_built_is_refused_before_memory_is_taken() -> None:
    def calls(count: int, factor: int) -> PlacementCalls:
        numbers = [2_000_000_000 if count < 0 else count] * 2
        return PlacementCalls(start_partitions=[0, 0], partition_counts=numbers, replication_factors=[factor, 1])

    message = r"^20000000 partitions of factor 1 are asked for at once; allowed are 10000000 partitions and 200000000"
    with pytest.raises(UsageError, match=message):
        calls(10_000_000, 1).empty_rows()
    with pytest.raises(UsageError, match=r"^4000000000 partitions of factor 3 are asked for at once"):
        calls(-1, 3).empty_rows()
    assert calls(2, 3).empty_rows().tolist() == [[-1, -1, -1]] * 4
