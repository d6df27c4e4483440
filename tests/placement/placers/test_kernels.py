"""The compiled loops: when numba is imported, and the counts."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from broker.cluster import Int32Array
from broker.errors import UsageError
from placement.balance.counts_kernel import rack_spread_shortfall
from placement.placers.broker_columns import PlacementCalls

BROKER_COUNT = 5
MATRICES = arrays(
    np.int32, st.tuples(st.integers(0, 12), st.integers(1, 4)), elements=st.integers(-1, BROKER_COUNT - 1)
)


def test_importing_the_placers_does_not_import_numba() -> None:
    check = (
        "import placement.placers.classic, placement.placers.striped, placement.balance.counts_kernel, sys;"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_rows_on_fewer_racks_than_they_could_be_are_marked() -> None:
    rows = np.array([[0, 1, -1], [0, 2, -1], [0, 1, 2], [3, 4, -1], [4, -1, -1]], dtype=np.int32)
    racks = np.array([0, 0, 1, 1, -1], dtype=np.int32)
    # Two in rack 0; one in each; both racks are all there are; a broker without rack adds none, twice.
    assert rack_spread_shortfall(rows, racks, 2).tolist() == [1, 0, 0, 1, 1]
    assert rack_spread_shortfall(rows, np.full(5, -1, dtype=np.int32), 0).tolist() == [0] * 5


@given(MATRICES, arrays(np.int32, BROKER_COUNT, elements=st.integers(-1, 2)))
def test_marks_equal_those_of_sets(matrix: Int32Array, racks: Int32Array) -> None:
    expected = []
    for row in matrix.tolist():
        holders = [position for position in row if position >= 0]
        used = {int(racks[position]) for position in holders} - {-1}
        expected.append(int(len(used) < min(len(holders), 3)))
    assert rack_spread_shortfall(matrix, racks, 3).tolist() == expected


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
