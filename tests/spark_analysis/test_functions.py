"""murmur2 and partition_of_key in SQL are those of Kafka's producer."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from placement.producer.keys import murmur2, partition_of_key
from spark_analysis import register
from spark_analysis.functions import murmur2_column, partition_column

KEYS = [b"kafka", b"", b"21", "ключ".encode(), b"x" * 1000]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()])
def test_columns_of_every_kind_are_hashed_as_their_bytes_also_in_slices(kind: pa.DataType) -> None:
    keys = pa.array(KEYS, pa.binary()).cast(kind)
    assert murmur2_column(keys).to_pylist() == [murmur2(key) for key in KEYS]
    assert murmur2_column(keys.slice(1, 3)).to_pylist() == [murmur2(key) for key in KEYS[1:4]]
    assert murmur2_column(keys.slice(0, 0)).to_pylist() == []
    with_null = pa.array([KEYS[0], None], pa.binary()).cast(kind)
    assert murmur2_column(with_null).to_pylist() == [murmur2(KEYS[0]), None]
    counts = pa.array([3, None, 7, 2**31 - 1, 1])
    assert partition_column(keys, counts).to_pylist() == [
        None if count is None else partition_of_key(key, count)
        for key, count in zip(KEYS, counts.to_pylist(), strict=True)
    ]


def test_sql_has_the_functions(spark: SparkSession) -> None:
    register(spark)
    row = spark.sql(
        "select partition_of_key('kafka', 3), murmur2(cast('kafka' as binary)), murmur2(cast(null as string))"
    ).collect()[0]
    assert tuple(row) == (1, -798503068, None)
    by = spark.sql("select partition_by('consistent_random', 'kafka', 4), partition_by('consistent_random', '', 4)")
    assert tuple(by.collect()[0]) == (3, None)
    with pytest.raises(PySparkException, match="the partitioner is 'md5'; allowed are murmur2, "):
        spark.sql("select partition_by('md5', 'kafka', 4)").collect()
    with pytest.raises(PySparkException, match="the number of partitions is 0; allowed are 1 or more"):
        spark.sql("select partition_of_key('kafka', 0)").collect()
    with pytest.raises(PySparkException, match="a key is int32; binary or string is needed"):
        spark.sql("select murmur2(7)").collect()
