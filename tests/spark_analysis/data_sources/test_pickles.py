"""What Spark sends to its workers: sources by name, so that a worker needs only to be able to import the package."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyspark import cloudpickle

from spark_analysis.data_sources.registry import SOURCES
from tests.spark_analysis.data_sources.dumps import KRAFT

LOG = str(KRAFT / "__cluster_metadata-0")


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name())
def test_a_source_its_reader_and_its_tasks_are_pickled_small_and_come_back(source: Any) -> None:
    assert len(cloudpickle.dumps(source)) < 200
    given = source({"path": "demo" if source.name() == "kafka_fleet" else LOG})
    reader = given.reader(given.schema())
    sent = cloudpickle.dumps((reader, reader.partitions()))
    assert len(sent) < 20_000
    again, (first, *_) = pickle.loads(sent)
    batch = next(iter(again.read(first)))
    assert batch.schema.names == given.schema().fieldNames()
    assert batch.num_rows > 0
