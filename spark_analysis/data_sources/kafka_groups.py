"""Read what kafka-consumer-groups --describe printed as `spark.read.format("kafka_groups")`.

A cluster is called as of kafka_cluster, so that groups and partitions meet under one name. Files of one name are of one
cluster; the option `cluster` puts them together: all of them with a name, those of a folder with `{folder}`.

It takes the options `table` (members, offsets, states, rejects, inputs); `mode`; `cluster`; `zones`, a file of lines
host,zone or client id,zone, or these after a cluster, where a name that ends in * stands for all that begin so;
those of listing files as of kafka_cluster. Members are taken to subscribe to what their group holds.

Constraints: the driver lists files and opens none. The files of one cluster are read in one task. Faults are rows
(group_batches.py).

Example:
    register(spark)
    members = spark.read.format("kafka_groups").options(cluster="prod", zones="zones.csv").load("groups/*.txt")

Source: pyspark.sql.datasource, 4.3.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Final

import attrs

from spark_analysis.data_sources.group_batches import ClusterFiles, GroupRequest, group_batches
from spark_analysis.data_sources.kafka_cluster import named_files
from spark_analysis.data_sources.options import MODES, GivenOptions, absolute_path
from spark_analysis.data_sources.source import LISTING_OPTIONS, FileReader, TableSource
from spark_analysis.sources.dumps import size_bytes
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import GROUP_TABLES

NAME: Final = "kafka_groups"
OPTIONS: Final = ("table", "mode", "cluster", "zones", *LISTING_OPTIONS)


class KafkaGroupsSource(TableSource):
    """Describe the data source kafka_groups to Spark."""

    NAME, TABLES, OPTIONS = NAME, GROUP_TABLES, OPTIONS

    def reader_of(self, given: GivenOptions, table: Table, columns: tuple[str, ...]) -> FileReader:
        """Return a reader of the files of clusters, some clusters a task."""
        zones = given.text("zones")
        path = None if zones is None else absolute_path(zones)
        request = GroupRequest(table, columns, given.choice("mode", MODES), path)
        return GroupReader(partial(group_batches, request), cluster_files(given), given)


class GroupReader(FileReader):
    """Read the files of clusters."""

    def there(self, one: ClusterFiles) -> ClusterFiles | None:
        """Return the files of a cluster that are still there, None if none is."""
        paths = tuple(filter(os.path.lexists, one.paths))
        return attrs.evolve(one, paths=paths) if paths else None


def cluster_files(given: GivenOptions) -> list[ClusterFiles]:
    """Return the clusters that the options name with their files."""
    together: dict[str, list[str]] = {}
    for path, name in named_files(given).items():
        together.setdefault(name, []).append(path)
    return [ClusterFiles(name, tuple(paths), sum(map(size_bytes, paths))) for name, paths in together.items()]
