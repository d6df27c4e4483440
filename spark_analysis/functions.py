"""Compute Kafka's murmur2 of a key and the partition that producers choose, as functions of Spark's SQL.

`murmur2(key)`, `partition_of_key(key, partition_count)` and `partition_by(partitioner, key, partition_count)`, which
is what `brokerside partition` prints, for keys that are binary, or strings, which are hashed as their UTF-8 bytes. With
murmur2, columns of keys go through one compiled loop, without a Python object per key. A partition count of 0 or less
ends the query with a sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from broker.cluster import Int32Array
from broker.errors import UsageError
from placement.producer.clients import partition_by
from placement.producer.keys import POSITIVE_MASK, KeyColumn, murmur2_many

if TYPE_CHECKING:
    Plain: TypeAlias = Any
else:
    Plain = pa.Array  # Spark reads the hints, and knows no type parameters of arrays.

NAMES: Final = ("murmur2", "partition_of_key", "partition_by")


def register_functions(spark: SparkSession) -> None:
    """Register the functions in the session `spark`, classic or Connect."""
    kernels: Any = (murmur2_column, partition_column, partition_by_column)
    functions: Any = F  # Its type stubs lack arrow_udf.
    for name, kernel in zip(NAMES, kernels, strict=True):
        spark.udf.register(name, functions.arrow_udf(kernel, "int"))


def murmur2_column(keys: Plain) -> Plain:
    """Return the murmur2 of each key; null for null."""
    found: Any = pa.array(_hashes(keys), mask=_nulls(keys))
    return found


def partition_column(keys: Plain, counts: Plain) -> Plain:
    """Return the partition of each key among so many; raise UsageError for a count below 1."""
    given: Any = counts.cast(pa.int64())
    least = pc.min(given).as_py()
    if least is not None and least < 1:
        raise UsageError(f"partition_of_key: the number of partitions is {least}; allowed are 1 or more")
    among: Any = pc.fill_null(given, 1).to_numpy(zero_copy_only=False)
    places = (_hashes(keys) & np.int32(POSITIVE_MASK)) % among
    found: Any = pa.array(places.astype(np.int32), mask=_nulls(keys) | _nulls(counts))
    return found


def partition_by_column(names: Plain, keys: Plain, counts: Plain) -> Plain:
    """Return the partition of each key by the partitioner of that name; null where it is drawn at random."""
    rows = zip(names.to_pylist(), keys.cast(pa.large_binary()).to_pylist(), counts.to_pylist(), strict=True)
    places = [None if None in row else partition_by(*row) for row in rows]
    found: Any = pa.array(places, pa.int32())
    return found


def _nulls(column: Any) -> Any:
    return column.is_null().to_numpy(zero_copy_only=False)


def _hashes(keys: Any) -> Int32Array:
    """Return the hash of each key; that of a null is of no meaning."""
    if not (pa.types.is_string(keys.type) or pa.types.is_binary(keys.type) or _is_large(keys.type)):
        raise UsageError(f"a key is {keys.type}; binary or string is needed")
    wide = keys.cast(pa.large_binary())
    _, offsets, data = wide.buffers()
    starts = (
        np.frombuffer(offsets, np.int64)[wide.offset : wide.offset + len(wide) + 1]
        if len(wide)
        else np.zeros(1, np.int64)
    )
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return murmur2_many(KeyColumn(held, starts))


def _is_large(kind: Any) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))
