"""Rows of flags and of ids are reduced as numpy reduces them, whatever the shape."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from broker.row_flags import any_in_row, count_in_row, distinct_in_row


@given(st.integers(0, 40), st.integers(0, 70), st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.5]))
def test_rows_are_reduced_as_by_numpy(height: int, width: int, seed: int, share: float) -> None:
    flags = np.random.default_rng(seed).random((height, width)) < share
    found, counts = any_in_row(flags), count_in_row(flags)
    assert found.dtype == np.bool_
    assert counts.dtype == np.int64
    assert found.tolist() == flags.any(axis=1).tolist()
    assert counts.tolist() == np.count_nonzero(flags, axis=1).tolist()


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 2**32 - 1), st.integers(-1, 5))
def test_distinct_ids_are_those_of_each_row_by_itself(height: int, width: int, seed: int, most: int) -> None:
    rows = np.random.default_rng(seed).integers(-2, most + 1, (height, width), dtype=np.int32)
    before = rows.copy()
    found = distinct_in_row(rows)
    assert found.dtype == np.int64
    assert found.tolist() == [np.unique(row[row >= 0]).size for row in rows]
    assert rows.tolist() == before.tolist()
