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

from functools import partial
from typing import Final

from spark_analysis.data_sources.group_batches import ClusterFiles, GroupRequest, group_batches
from spark_analysis.data_sources.kafka_cluster import cluster_names
from spark_analysis.data_sources.listing import TASK_BYTES, InputFile, grouped, input_files
from spark_analysis.data_sources.options import MODES, GivenOptions, absolute_path
from spark_analysis.data_sources.source import TASK_BYTES_MAX, TableSource, TaskReader
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import GROUP_TABLES

NAME: Final = "kafka_groups"
OPTIONS: Final = ("table", "mode", "cluster", "zones", "recursiveFileLookup", "task_bytes")


class KafkaGroupsSource(TableSource):
    """Describe the data source kafka_groups to Spark."""

    NAME, TABLES, OPTIONS = NAME, GROUP_TABLES, OPTIONS

    def reader_of(self, given: GivenOptions, table: Table, columns: tuple[str, ...]) -> TaskReader:
        """Return a reader of the files of clusters, some clusters a task."""
        zones = given.text("zones")
        path = None if zones is None else absolute_path(zones)
        request = GroupRequest(table, columns, given.choice("mode", MODES), path)
        return TaskReader(partial(group_batches, request), cluster_groups(given))


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
