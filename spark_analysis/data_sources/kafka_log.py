"""Read the records of segment files as `spark.read.format("kafka_log")`.

A segment of 64 MiB or more is a task of its own; small ones share a task.

It takes the options `table` (records, batches, damage, segments); `mode`; `topics`, `partitions`, with commas: other
segments are not opened; `start_offset`, `end_offset`, `start_time`, `end_time`, ranges without their end, times in UTC
or ms since 1970; `values` = false leaves `value` and `headers` null; `read_committed` gives what a consumer of that
isolation level gets; `pushdown`; `task_bytes`.

Constraints: a query's filters are taken only with the option `pushdown`, and then Spark wants the session's setting
`spark.sql.python.filterPushdown.enabled`. Spark 4.3.0 keeps what was planned for one use of a DataFrame and gives it to
the next, so that a DataFrame used twice (a union, a join, a count after a filter) silently lacks rows. The options
`topics`, `start_offset` and the like are safe and leave out as much.

How: filters of a query only narrow what is read (log_filter.py); Spark applies them once more, so that a filter that
cannot be used, or a row of a fault, is treated as in any other table.

Example: spark.read.format("kafka_log").option("topics", "orders").load("/var/lib/kafka").groupBy("partition").count()

Source: pyspark.sql.datasource, 4.3; org.apache.spark.sql.execution.datasources.v2.python.PythonScanBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import attrs
import pyarrow as pa
from pyspark.sql import datasource as ds

from spark_analysis.data_sources.listing import TASK_BYTES, grouped
from spark_analysis.data_sources.log_filter import OPTIONS as FILTER_OPTIONS
from spark_analysis.data_sources.log_filter import LogFilter
from spark_analysis.data_sources.log_listing import LogSegment, log_segments
from spark_analysis.data_sources.log_rows import LogRequest, segment_batches
from spark_analysis.data_sources.options import MODES, GivenOptions
from spark_analysis.data_sources.source import TASK_BYTES_MAX, TableSource
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import LOG_RECORDS, LOG_TABLES

NAME: Final = "kafka_log"
OPTIONS: Final = ("table", "mode", *FILTER_OPTIONS, "values", "read_committed", "pushdown", "task_bytes")
_RELATIONS: Final[dict[type[ds.Filter], str]] = {
    ds.EqualTo: "=",
    ds.In: "in",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
}

Comparison: TypeAlias = ds.EqualTo | ds.In | ds.LessThan | ds.LessThanOrEqual | ds.GreaterThan | ds.GreaterThanOrEqual


class KafkaLogSource(TableSource):
    """Describe the data source kafka_log to Spark."""

    NAME, TABLES, OPTIONS = NAME, LOG_TABLES, OPTIONS

    def reader_of(self, given: GivenOptions, table: Table, columns: tuple[str, ...]) -> ds.DataSourceReader:
        """Return a reader of segments, which takes a query's filters with the option `pushdown`."""
        request = LogRequest(
            table,
            columns,
            given.choice("mode", MODES),
            LogFilter.of(given),
            given.flag("values", True),
            given.flag("read_committed", False),
        )
        task_bytes = given.number("task_bytes", low=1, high=TASK_BYTES_MAX) or TASK_BYTES
        reader = FilteredKafkaLogReader if given.flag("pushdown", False) else KafkaLogReader
        return reader(request, log_segments(given.paths()), task_bytes)


class KafkaLogReader(ds.DataSourceReader):
    """Read segments, a task each if they are large."""

    def __init__(self, request: LogRequest, segments: Sequence[LogSegment], task_bytes: int) -> None:
        self._request = request
        self._segments = segments
        self._task_bytes = task_bytes

    def partitions(self) -> Sequence[ds.InputPartition]:
        """Return the wanted segments, those of one task together; one empty task if there is none."""
        wanted = [segment for segment in self._segments if self._request.wanted.wants_segment(segment)]
        return [ds.InputPartition(group) for group in grouped(wanted, self._task_bytes) or [[]]]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task's segments; runs on an executor."""
        return segment_batches(self._request, partition.value)


class FilteredKafkaLogReader(KafkaLogReader):
    """Read segments, leaving out what the filters of a query exclude."""

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:  # noqa: N802 - Spark's name.
        """Skip what the filters exclude, and return all of them, to be applied by Spark as well."""
        if self._request.table == LOG_RECORDS:
            for each in filters:
                if isinstance(each, Comparison):
                    relation = _RELATIONS[type(each)]
                    wanted = self._request.wanted.narrowed(".".join(each.attribute), relation, each.value)
                    self._request = attrs.evolve(self._request, wanted=wanted)
        return filters
