"""Read KRaft's metadata logs as `spark.read.format("kafka_metadata")`: the state at moments, or the history as events.

It takes the options `table` (partitions, brokers, clusters, events, rejects, inputs); `mode`; `at`, rising moments with
commas, offsets or times in UTC, the end if left out; `by_brokers` takes each moment before the set of live brokers
changed; `cluster`, `recursiveFileLookup` and `task_bytes` as of kafka_cluster.

Constraints: the driver lists files and opens none; each log is replayed on an executor, one log a task or several
small ones.

Example: spark.read.format("kafka_metadata").option("table", "events").load("/var/lib/kafka/__cluster_metadata-0")

Source: pyspark.sql.datasource, 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from broker.errors import UsageError
from log.metadata import END
from spark_analysis.data_sources.kafka_cluster import DumpGroup, chosen_table, dump_groups
from spark_analysis.data_sources.metadata_rows import MetadataRequest, metadata_batches
from spark_analysis.data_sources.options import MODES, GivenOptions
from spark_analysis.data_sources.spark_types import chosen_columns, spark_schema_of
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.tables.schemas import METADATA_TABLES

NAME: Final = "kafka_metadata"
OPTIONS: Final = ("table", "mode", "at", "by_brokers", "cluster", "recursiveFileLookup", "task_bytes")


class KafkaMetadataSource(DataSource):
    """Describe the data source kafka_metadata to Spark: its name, its schema, its reader."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return NAME

    def schema(self) -> StructType:
        """Return the schema of the table that the options name."""
        return spark_schema_of(chosen_table(self._given(), METADATA_TABLES))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns in `schema`; raise UsageError for options that make no sense."""
        given = self._given()
        table = chosen_table(given, METADATA_TABLES)
        at, by_brokers = given.moments("at"), given.flag("by_brokers", False)
        if at and by_brokers:
            raise UsageError(f"options 'at' and 'by_brokers' of {NAME} both choose the moments; give one of them")
        request = MetadataRequest(
            table, chosen_columns(NAME, table, schema), given.choice("mode", MODES), at or (END,), by_brokers
        )
        return KafkaMetadataReader(request, dump_groups(given))

    def _given(self) -> GivenOptions:
        return GivenOptions.of(NAME, self.options, OPTIONS)


class KafkaMetadataReader(DataSourceReader):
    """Read groups of metadata logs, a task each."""

    def __init__(self, request: MetadataRequest, groups: Sequence[Sequence[DumpInput]]) -> None:
        self._request = request
        self._groups = groups

    def partitions(self) -> Sequence[InputPartition]:
        """Return the groups of logs, one for each task."""
        return [DumpGroup(group) for group in self._groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one group of logs; runs on an executor."""
        return metadata_batches(self._request, partition.value)
