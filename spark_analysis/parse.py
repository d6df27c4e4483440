"""Parse dumps out of a DataFrame of files, such as Spark's own binaryFile, in batch and as a stream.

Whatever file system Spark reads, and its options pathGlobFilter and ignoreMissingFiles, serve here. A row in is a file:
its `path` and its `content`, compressed or not, of one dump; rows out are those of the data source kafka_cluster. A
file that cannot be used is a row with a `fault`. A cluster is called as the column `cluster` of the files says, else as
the pattern `cluster` does.

Example:
    files = spark.read.format("binaryFile").load("s3a://dumps/2026-11-28/*.txt.gz")
    balance.measures(partitions(files), brokers(files)).show()

Left out: metadata logs of several files (kafka_metadata), and files of more than 2 GiB, which no row can hold.

Source: org.apache.spark.sql.execution.datasources.binaryfile.BinaryFileFormat, 4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StringType

from broker.errors import UsageError
from placement.formats.racks import Racks
from spark_analysis.data_sources.dump_rows import DumpRequest, dump_batches
from spark_analysis.data_sources.options import MODES, PERMISSIVE
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.frames.inputs import CLUSTER, refuse_missing, refuse_other
from spark_analysis.frames.per_cluster import named
from spark_analysis.sources.dumps import FORMATS, DumpInput, read_content
from spark_analysis.sources.inputs import named_by, racks_in
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import CLUSTER_BROKERS, CLUSTER_INPUTS, CLUSTER_PARTITIONS


@attrs.frozen(kw_only=True)
class Parsing:
    """Choose how files are parsed.

    `cluster` is the pattern of clusters' names, {file} and {folder} in it those of the path; `format` one of
    `FORMATS` instead of guessing; `racks` the path of a racks file, which the driver reads; `mode` what becomes of a
    file that cannot be used, one of Spark's three.
    """

    cluster: str = "{file}"
    format: str | None = None
    racks: str | None = None
    min_insync_replicas: int | None = None
    mode: str = PERMISSIVE


def partitions(files: DataFrame, parsing: Parsing = Parsing()) -> DataFrame:
    """Return one row per partition of each cluster, and one per fault.

    Raises UsageError for files without `path` and `content`, and for a parsing that makes no sense.
    """
    return _parsed(files, CLUSTER_PARTITIONS, parsing)


def brokers(files: DataFrame, parsing: Parsing = Parsing()) -> DataFrame:
    """Return one row per broker of each cluster; raise UsageError as `partitions` does."""
    return _parsed(files, CLUSTER_BROKERS, parsing)


def inputs(files: DataFrame, parsing: Parsing = Parsing()) -> DataFrame:
    """Return one row per file that accounts for its rows; raise UsageError as `partitions` does."""
    return _parsed(files, CLUSTER_INPUTS, parsing)


def _parsed(files: DataFrame, table: Table, parsing: Parsing) -> DataFrame:
    for name, value, allowed in (("mode", parsing.mode, MODES), ("format", parsing.format, (None, *FORMATS))):
        if value not in allowed:
            raise UsageError(f"{name} is {value!r}; allowed are {', '.join(str(each) for each in allowed if each)}")
    named_by(parsing.cluster, "x")  # A placeholder that is not known is refused before a job runs.
    names = ["path", "content", *([CLUSTER] if CLUSTER in files.columns else [])]
    _check_files(files, names)
    racks = None if parsing.racks is None else racks_in(parsing.racks)
    request = DumpRequest(table, table.column_names, parsing.mode, min_insync_replicas=parsing.min_insync_replicas)
    parse = partial(_batches, request, parsing, racks)
    kernel = named(lambda batches: parse(batches), f"parse_{table.name}")
    return files.select(*names).mapInArrow(kernel, spark_schema_of(table))


def _check_files(files: DataFrame, names: list[str]) -> None:
    refuse_other("files", files)
    refuse_missing("files", names, files.columns)
    for name in names:
        wanted = BinaryType() if name == "content" else StringType()
        found, needed = files.schema[name].dataType.simpleString(), wanted.simpleString()
        if found != needed:
            raise UsageError(f"column {name!r} of the DataFrame of files is {found}; {needed} is needed")


def _batches(
    request: DumpRequest, parsing: Parsing, racks: Racks | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each file, one held at a time; runs on an executor."""
    for batch in batches:
        for place in range(batch.num_rows):
            row = {name: batch.column(name)[place].as_py() for name in batch.schema.names}
            path, content = row["path"] or "", row["content"] or b""
            name = row.get(CLUSTER) or named_by(parsing.cluster, path)
            read = partial(read_content, content=content)
            yield from dump_batches(request, DumpInput(path, name, parsing.format), racks, read)


__all__ = ("Parsing", "brokers", "inputs", "partitions")
