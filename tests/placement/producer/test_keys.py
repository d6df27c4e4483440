"""The partition of a key. Kafka's own answers are among the golden vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import DivisionByZeroError, UsageError
from placement.producer.keys import KeyColumn, murmur2, murmur2_many, partition_of_key, partitions_of_keys

KEYS = st.lists(st.binary(max_size=20), max_size=30)


@given(KEYS)
def test_a_column_hashes_as_its_keys_do_one_by_one(keys: list[bytes]) -> None:
    assert murmur2_many(KeyColumn.of(keys)).tolist() == [murmur2(key) for key in keys]


@given(KEYS, st.integers(1, 2**31 - 1))
def test_a_column_is_routed_as_its_keys_are_one_by_one(keys: list[bytes], partition_count: int) -> None:
    partitions = partitions_of_keys(KeyColumn.of(keys), partition_count)
    assert partitions.tolist() == [partition_of_key(key, partition_count) for key in keys]
    assert partitions.dtype == np.int32


def test_a_part_of_a_larger_buffer_is_a_column_too() -> None:
    column = KeyColumn(np.frombuffer(b"..kafka--", np.uint8), np.array([2, 7], np.int64))
    assert len(column) == 1
    assert murmur2_many(column).tolist() == [murmur2(b"kafka")]


def test_no_partitions_is_javas_division_by_zero() -> None:
    with pytest.raises(DivisionByZeroError, match=r"^/ by zero$"):
        partition_of_key(b"", 0)
    with pytest.raises(DivisionByZeroError, match=r"^/ by zero$"):
        partitions_of_keys(KeyColumn.of([b"k"]), 0)


@pytest.mark.parametrize("partition_count", [-1, 2**31])
def test_an_impossible_number_of_partitions_is_refused(partition_count: int) -> None:
    with pytest.raises(
        UsageError, match=f"^the number of partitions is {partition_count}; allowed are 1 to 2147483647$"
    ):
        partition_of_key(b"k", partition_count)


@pytest.mark.parametrize("offsets", [[], [0, 4], [-1, 2], [0, 2, 1]])
def test_offsets_that_leave_the_data_or_fall_are_refused(offsets: list[int]) -> None:
    with pytest.raises(UsageError, match="key column"):
        KeyColumn(np.frombuffer(b"abc", np.uint8), np.array(offsets, np.int64))
