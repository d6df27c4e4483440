"""Read dumps of clusters in every known format as `spark.read.format("kafka_cluster")`.

A cluster is called as its file
without folder and ending, or by its path where two would be alike; with the option `cluster` as that says, {file} and
{folder} in it being those of the input.

It takes the options `table` (partitions, brokers, clusters, rejects, inputs); `mode`; `format` instead of guessing;
`cluster`; `racks`, `sizes` and `min_isr` as of a report, sizes of several clusters as {"NAME": "FILE"};
`recursiveFileLookup`; `task_bytes`, about so many bytes of input a task (64 MiB), a compressed file counting 16 times.

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
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from broker.errors import UsageError
from broker.ids import INT32_MAX
from spark_analysis.data_sources.dump_rows import DumpRequest, table_batches
from spark_analysis.data_sources.listing import TASK_BYTES, grouped, input_files
from spark_analysis.data_sources.options import MODES, GivenOptions, absolute_path
from spark_analysis.data_sources.source import TASK_BYTES_MAX, TableSource, TaskReader
from spark_analysis.sources.dumps import FORMATS, DumpInput
from spark_analysis.sources.files import name_of
from spark_analysis.sources.inputs import named_by
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import CLUSTER_TABLES

NAME: Final = "kafka_cluster"
OPTIONS: Final = (
    "table",
    "mode",
    "format",
    "cluster",
    "racks",
    "sizes",
    "min_isr",
    "recursiveFileLookup",
    "task_bytes",
)


class KafkaClusterSource(TableSource):
    """Describe the data source kafka_cluster to Spark."""

    NAME, TABLES, OPTIONS = NAME, CLUSTER_TABLES, OPTIONS

    def reader_of(self, given: GivenOptions, table: Table, columns: tuple[str, ...]) -> TaskReader:
        """Return a reader of groups of dumps."""
        racks = given.text("racks")
        request = DumpRequest(
            table,
            columns,
            given.choice("mode", MODES),
            None if racks is None else absolute_path(racks),
            given.number("min_isr", low=1, high=INT32_MAX),
        )
        return TaskReader(partial(table_batches, request), dump_groups(given))


def dump_groups(given: GivenOptions) -> list[list[DumpInput]]:
    """Return the inputs that the options name, those of one task together."""
    files = input_files(given.paths(), recursive=given.flag("recursiveFileLookup", False))
    named = cluster_names([file.path for file in files], given.text("cluster"))
    sizes = _sizes(given.text("sizes"), list(named.values()))
    kind = given.text("format")
    if kind is not None:
        kind = given.choice("format", FORMATS)
    dumps = {path: DumpInput(path, name, kind, sizes=sizes.get(name)) for path, name in named.items()}
    task_bytes = given.number("task_bytes", low=1, high=TASK_BYTES_MAX) or TASK_BYTES
    return [[dumps[file.path] for file in group] for group in grouped(files, task_bytes)]


def cluster_names(paths: Sequence[str], pattern: str | None) -> dict[str, str]:
    """Return the name of the cluster of each path, as the option `cluster` says where it is given.

    Raises UsageError as `named_by` does.
    """
    if pattern is not None:
        return {path: named_by(pattern, path) for path in paths}
    stems = {path: name_of(path) for path in paths}
    count = Counter(stems.values())
    return {path: stem if count[stem] == 1 else path for path, stem in stems.items()}


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
