"""Read what kafka-consumer-groups --describe printed as `spark.read.format("kafka_groups")`.

A file is a cluster by itself, called as the file without
folder and ending, so that groups and partitions meet under one name; the option `cluster` puts files of one cluster
together: all of them with a name, those of a folder with `{folder}`.

It takes the options `table` (members, offsets, states, rejects, inputs); `mode`; `cluster`; `zones`, a file of lines
host,zone or client id,zone, or these after a cluster, where a name that ends in * stands for all that begin so;
`recursiveFileLookup`; `task_bytes`. Members are taken to subscribe to what their group holds.

Constraints: the driver lists files and opens none. The files of one cluster are read in one task. Faults are rows
(group_batches.py).

Example:
    register(spark)
    members = spark.read.format("kafka_groups").options(cluster="prod", zones="zones.csv").load("groups/*.txt")

Source: pyspark.sql.datasource, 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_analysis.data_sources.group_batches import ClusterFiles, GroupRequest, group_batches
from spark_analysis.data_sources.kafka_cluster import TASK_BYTES_MAX, chosen_table, cluster_names
from spark_analysis.data_sources.listing import TASK_BYTES, InputFile, grouped, input_files
from spark_analysis.data_sources.options import MODES, GivenOptions, absolute_path
from spark_analysis.data_sources.spark_types import chosen_columns, spark_schema_of
from spark_analysis.tables.schemas import GROUP_TABLES

NAME: Final = "kafka_groups"
OPTIONS: Final = ("table", "mode", "cluster", "zones", "recursiveFileLookup", "task_bytes")


class KafkaGroupsSource(DataSource):
    """Describe the data source kafka_groups to Spark: its name, its schema, its reader."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return NAME

    def schema(self) -> StructType:
        """Return the schema of the table that the options name."""
        return spark_schema_of(chosen_table(self._given(), GROUP_TABLES))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns in `schema`; raise UsageError for options that make no sense."""
        given = self._given()
        table = chosen_table(given, GROUP_TABLES)
        zones = given.text("zones")
        request = GroupRequest(
            table,
            chosen_columns(NAME, table, schema),
            given.choice("mode", MODES),
            None if zones is None else absolute_path(zones),
        )
        return KafkaGroupsReader(request, cluster_groups(given))

    def _given(self) -> GivenOptions:
        return GivenOptions.of(NAME, self.options, OPTIONS)


class ClusterGroup(InputPartition):
    """Hold the clusters of one task, each with its files."""

    def __init__(self, clusters: Sequence[ClusterFiles]) -> None:
        super().__init__(tuple(clusters))


class KafkaGroupsReader(DataSourceReader):
    """Read the files of clusters, some clusters a task."""

    def __init__(self, request: GroupRequest, groups: Sequence[Sequence[ClusterFiles]]) -> None:
        self._request = request
        self._groups = groups

    def partitions(self) -> Sequence[InputPartition]:
        """Return the clusters with their files, those of one task together."""
        return [ClusterGroup(group) for group in self._groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the clusters of one task; runs on an executor."""
        return group_batches(self._request, partition.value)


def cluster_groups(given: GivenOptions) -> list[list[ClusterFiles]]:
    """Return the clusters that the options name with their files, those of one task together."""
    files = input_files(given.paths(), recursive=given.flag("recursiveFileLookup", False))
    named = cluster_names([file.path for file in files], given.text("cluster"))
    together: dict[str, list[InputFile]] = {}
    for file in files:
        together.setdefault(named[file.path], []).append(file)
    clusters = [
        ClusterFiles(name, tuple(file.path for file in some), sum(file.size_bytes for file in some))
        for name, some in together.items()
    ]
    return grouped(clusters, given.number("task_bytes", low=1, high=TASK_BYTES_MAX) or TASK_BYTES)
