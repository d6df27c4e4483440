"""Parse dumps out of a DataFrame of files, such as Spark's own binaryFile, in batch and as a stream.

Whatever file system Spark reads, and its options pathGlobFilter and ignoreMissingFiles, serve here. A row in is a file:
its `path` and its `content`, compressed or not, of one dump; rows out are those of the data source kafka_cluster. A
file that cannot be used is a row with a `fault`. A cluster is called as the column `cluster` of the files says, else as
the pattern `cluster` does.

Example:
    files = spark.read.format("binaryFile").load("s3a://dumps/2026-11-28/*.txt.gz")
    balance.measures(partitions(files), brokers(files)).show()

Each of these parses the files. To parse them once, keep the rows of every table, nested, and take from them:
    parsed = tables(files).persist()
    good, rejects = rows_of(parsed, "partitions").where("fault is null"), rows_of(parsed, "rejects")

Left out: metadata logs of several files (kafka_metadata), and files of more than 2 GiB, which no row can hold.

Source: org.apache.spark.sql.execution.datasources.binaryfile.BinaryFileFormat, 4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

from broker.errors import BrokersideError, UsageError
from placement.formats.parsed import ParsedDump
from placement.formats.racks import Racks
from spark_analysis.data_sources.dump_rows import DumpRequest, dump_batches
from spark_analysis.data_sources.options import MODES, PERMISSIVE
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.frames.inputs import CLUSTER, refuse_missing, refuse_other
from spark_analysis.frames.per_cluster import named
from spark_analysis.sources.dumps import FORMATS, DumpInput, read_content
from spark_analysis.sources.inputs import named_by, racks_in
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import CLUSTER_BROKERS, CLUSTER_INPUTS, CLUSTER_PARTITIONS, CLUSTER_TABLES


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


def tables(files: DataFrame, parsing: Parsing = Parsing()) -> DataFrame:
    """Return the rows of every table in arrays, a column a table, some thousand rows of one table in each row.

    Every file is parsed once. Raises UsageError as `partitions` does.
    """
    fields = [StructField(table.name, ArrayType(spark_schema_of(table))) for table in CLUSTER_TABLES]
    return _mapped(files, CLUSTER_TABLES, parsing, "parse_tables", StructType(fields))


def rows_of(parsed: DataFrame, table: str) -> DataFrame:
    """Return the rows of a table of what `tables` gave; raise UsageError for a table that is none."""
    names = [each.name for each in CLUSTER_TABLES]
    if table not in names:
        raise UsageError(f"there is no table {table!r} of parsed files; there are {', '.join(names)}")
    refuse_missing("parsed", [table], parsed.columns)
    return parsed.select(F.inline(table))


def _parsed(files: DataFrame, table: Table, parsing: Parsing) -> DataFrame:
    return _mapped(files, (table,), parsing, f"parse_{table.name}", spark_schema_of(table))


def _mapped(files: DataFrame, wanted: Sequence[Table], parsing: Parsing, name: str, schema: StructType) -> DataFrame:
    for name, value, allowed in (("mode", parsing.mode, MODES), ("format", parsing.format, (None, *FORMATS))):
        if value not in allowed:
            raise UsageError(f"{name} is {value!r}; allowed are {', '.join(str(each) for each in allowed if each)}")
    named_by(parsing.cluster, "x")  # A placeholder that is not known is refused before a job runs.
    names = ["path", "content", *([CLUSTER] if CLUSTER in files.columns else [])]
    _check_files(files, names)
    racks = None if parsing.racks is None else racks_in(parsing.racks)
    requests = [
        DumpRequest(table, table.column_names, parsing.mode, min_insync_replicas=parsing.min_insync_replicas)
        for table in wanted
    ]
    parse = partial(_batches, requests, parsing, racks)
    kernel = named(lambda batches: parse(batches), name)
    return files.select(*names).mapInArrow(kernel, schema)


def _check_files(files: DataFrame, names: list[str]) -> None:
    refuse_other("files", files)
    refuse_missing("files", names, files.columns)
    for name in names:
        wanted = BinaryType() if name == "content" else StringType()
        found, needed = files.schema[name].dataType.simpleString(), wanted.simpleString()
        if found != needed:
            raise UsageError(f"column {name!r} of the DataFrame of files is {found}; {needed} is needed")


def _batches(
    requests: Sequence[DumpRequest], parsing: Parsing, racks: Racks | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each file, one held at a time, nested where tables are several; runs on an executor."""
    for batch in batches:
        for place in range(batch.num_rows):
            row = {name: batch.column(name)[place].as_py() for name in batch.schema.names}
            path, content = row["path"] or "", row["content"] or b""
            name = row.get(CLUSTER) or named_by(parsing.cluster, path)
            dump = DumpInput(path, name, parsing.format)
            read = _read_once(dump, content)
            for request in requests:
                for found in dump_batches(request, dump, racks, read):
                    yield found if len(requests) == 1 else _nested(found, request, requests)


def _read_once(dump: DumpInput, content: bytes) -> Callable[[DumpInput], ParsedDump]:
    """Return what gives the content as parsed, or raises why it cannot be, each time it is called."""
    try:
        parsed = read_content(dump, content)
    except BrokersideError as error:
        return partial(_raise, error)
    return lambda _: parsed


def _raise(error: BrokersideError, _: DumpInput) -> ParsedDump:
    raise error


def _nested(rows: pa.RecordBatch, request: DumpRequest, requests: Sequence[DumpRequest]) -> pa.RecordBatch:
    """Return one row with the rows of one table in its column, and null in those of the others."""
    held = pa.ListArray.from_arrays(pa.array([0, rows.num_rows], pa.int32()), rows.to_struct_array())
    nulls = {each.table.name: pa.nulls(1, _list_of(each.table)) for each in requests}
    return pa.RecordBatch.from_pydict({**nulls, request.table.name: held.cast(_list_of(request.table))})


def _list_of(table: Table) -> pa.ListType[Any]:
    fields = [field.with_nullable(True) for field in table.arrow_schema()]
    return pa.list_(pa.struct(fields))


__all__ = ("Parsing", "brokers", "inputs", "partitions", "rows_of", "tables")
