"""Read KRaft's metadata logs as `spark.read.format("kafka_metadata")`: the state at moments, or the history as events.

It takes the options `table` (partitions, brokers, clusters, events, rejects, inputs); `mode`; `at`, rising moments with
commas, offsets or times in UTC, the end if left out; `by_brokers` takes each moment before the set of unfenced brokers
changed; `cluster`, `clusters`, `pushdown` and those of listing files as of kafka_cluster.

Constraints: the driver lists files and opens none; each log is replayed on an executor, one log a task or several
small ones.

Example: spark.read.format("kafka_metadata").option("table", "events").load("/var/lib/kafka/__cluster_metadata-0")

Source: pyspark.sql.datasource, 4.3.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.errors import UsageError
from log.metadata import END
from spark_analysis.data_sources.kafka_cluster import cluster_reader
from spark_analysis.data_sources.metadata_rows import MetadataRequest, metadata_batches
from spark_analysis.data_sources.options import MODES, GivenOptions
from spark_analysis.data_sources.source import LISTING_OPTIONS, FileReader, TableSource
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import METADATA_TABLES

NAME: Final = "kafka_metadata"
OPTIONS: Final = ("table", "mode", "at", "by_brokers", "cluster", "clusters", "pushdown", *LISTING_OPTIONS)


class KafkaMetadataSource(TableSource):
    """Describe the data source kafka_metadata to Spark."""

    NAME, TABLES, OPTIONS = NAME, METADATA_TABLES, OPTIONS

    def reader_of(self, given: GivenOptions, table: Table, columns: tuple[str, ...]) -> FileReader:
        """Return a reader of groups of logs; raise UsageError for options that both choose the moments."""
        at, by_brokers = given.moments("at"), given.flag("by_brokers", False)
        if at and by_brokers:
            raise UsageError(f"options 'at' and 'by_brokers' of {NAME} both choose the moments; give one of them")
        request = MetadataRequest(table, columns, given.choice("mode", MODES), at or (END,), by_brokers)
        return cluster_reader(partial(metadata_batches, request), given)
