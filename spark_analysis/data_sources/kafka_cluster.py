"""Read dumps of clusters in every known format as `spark.read.format("kafka_cluster")`.

A cluster is called as its input's path below what is loaded, without ending (sources/listing.py), or as the option
`cluster` says, {file} and {folder} in it being those of the input. Inputs of one name are faults.

It takes the options `table` (partitions, brokers, clusters, rejects, inputs); `mode`; `format` instead of guessing;
`cluster`; `racks`, `sizes` and `min_isr` as of a report, sizes of several clusters as {"NAME": "FILE"}; `clusters`,
names with commas: inputs of others are not opened; `pushdown`, which takes a query's filters on `cluster` as kafka_log
takes filters; `recursiveFileLookup`, `pathGlobFilter`, `ignoreMissingFiles` as Spark's own sources; `task_bytes`, about
so many bytes of input a task (64 MiB), a compressed file counting 16 times. A schema given to the reader chooses
columns.

Constraints: the driver lists files and opens none; each input is parsed once, on an executor. Faults are rows
(dump_rows.py).

Example:
    register(spark)
    spark.read.format("kafka_cluster").load("dumps/*.txt").where("size(isr) < size(replicas)").show()

Left out: which dumps are successive moments of one cluster; each input is a cluster at one moment, and a metadata log
is read at its end (kafka_metadata has every moment).

Source: pyspark.sql.datasource, 4.3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs
import pyarrow as pa

from broker.errors import UsageError
from broker.ids import INT32_MAX
from spark_analysis.data_sources.dump_rows import DumpRequest, table_batches
from spark_analysis.data_sources.options import MODES, GivenOptions, absolute_path
from spark_analysis.data_sources.source import LISTING_OPTIONS, FileReader, TableSource, TakesFilters
from spark_analysis.sources.dumps import FORMATS, DumpInput
from spark_analysis.sources.inputs import clashes, named_by, source_of
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import CLUSTER_TABLES

NAME: Final = "kafka_cluster"
OPTIONS: Final = (
    *("table", "mode", "format", "cluster", "clusters", "racks", "sizes", "min_isr", "pushdown"),
    *LISTING_OPTIONS,
)


class KafkaClusterSource(TableSource):
    """Describe the data source kafka_cluster to Spark."""

    NAME, TABLES, OPTIONS = NAME, CLUSTER_TABLES, OPTIONS

    def reader_of(self, given: GivenOptions, table: Table, columns: tuple[str, ...]) -> FileReader:
        """Return a reader of groups of dumps."""
        racks = given.text("racks")
        request = DumpRequest(
            table,
            columns,
            given.choice("mode", MODES),
            None if racks is None else absolute_path(racks),
            given.number("min_isr", low=1, high=INT32_MAX),
        )
        return cluster_reader(partial(table_batches, request), given)


class ClusterReader(FileReader):
    """Read dumps or metadata logs, those of the clusters `names` alone unless it is None."""

    names: frozenset[str] | None = None

    def wants(self, one: DumpInput) -> bool:
        """Return whether an input may hold a wanted cluster; one of several has the input's name and more."""
        return self.names is None or any(name.startswith(one.name or "") for name in self.names)


class FilteredClusterReader(ClusterReader, TakesFilters):
    """Read dumps or metadata logs, leaving out clusters that the filters of a query exclude."""

    def narrow(self, column: str, relation: str, value: Any) -> None:
        """Leave out inputs by their cluster."""
        if column == "cluster" and relation in ("=", "in"):
            values = frozenset(value) if relation == "in" else frozenset([value])
            self.names = values if self.names is None else self.names & values


def cluster_reader(read: Callable[[Any], Iterator[pa.RecordBatch]], given: GivenOptions) -> ClusterReader:
    """Return a reader of the inputs that the options name."""
    kind = FilteredClusterReader if given.flag("pushdown", False) else ClusterReader
    reader = kind(read, cluster_inputs(given), given)
    reader.names = frozenset(given.names("clusters")) or None
    return reader


def cluster_inputs(given: GivenOptions) -> list[DumpInput]:
    """Return the inputs named by the options; inputs that share a name are refused when they are read."""
    named = named_files(given)
    sizes = _sizes(given.text("sizes"), list(named.values()))
    kind = None if given.text("format") is None else given.choice("format", FORMATS)
    dumps = [DumpInput(path, name, kind, sizes=sizes.get(name), source=source_of(path)) for path, name in named.items()]
    refused = clashes(dumps)
    return [attrs.evolve(dump, refused=refused.get(dump.path)) for dump in dumps]


def named_files(given: GivenOptions) -> dict[str, str]:
    """Return the cluster name of each file: that of the option `cluster` if given, else its path.

    Raises UsageError as `named_by` does.
    """
    pattern = given.text("cluster")
    return {file.path: file.name if pattern is None else named_by(pattern, file.path) for file in given.files()}


def _sizes(text: str | None, names: Sequence[str]) -> Mapping[str, str]:
    """Return the file of sizes of each cluster that has one."""
    if text is None:
        return {}
    if not text.lstrip().startswith("{"):
        if len(names) > 1:
            raise UsageError(f'option \'sizes\' of {NAME}: of {len(names)} clusters; give {{"NAME": "FILE"}}')
        return dict.fromkeys(names, absolute_path(text))
    try:
        given: Any = json.loads(text)
    except ValueError as error:
        raise UsageError(f"option 'sizes' of {NAME} is no JSON object: {error}") from None
    unknown = sorted(str(name) for name in given if name not in names)
    if unknown:
        raise UsageError(f"option 'sizes' of {NAME}: no cluster is called {unknown[0]!r}; there are {list(names)[:10]}")
    return {name: absolute_path(str(path)) for name, path in given.items()}
