"""Read the records of segment files as `spark.read.format("kafka_log")`.

A segment of 64 MiB or more is a task of its own; small ones share a task.

It takes the options `table` (records, batches, damage, segments); `mode`; `topics`, `partitions`, with commas: other
segments are not opened; `start_offset`, `end_offset`, `start_time`, `end_time`, ranges without their end, times in UTC
or ms since 1970; `values` = false leaves `value` and `headers` null; `read_committed` gives what a consumer of that
isolation level gets; `pushdown`; `ignoreMissingFiles`; `task_bytes`.

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

from functools import partial
from typing import Any, Final

import attrs
from pyspark.sql.datasource import DataSourceReader

from spark_analysis.data_sources.log_filter import OPTIONS as FILTER_OPTIONS
from spark_analysis.data_sources.log_filter import LogFilter
from spark_analysis.data_sources.log_listing import LogSegment, log_segments
from spark_analysis.data_sources.log_rows import LogRequest, segment_batches
from spark_analysis.data_sources.options import MODES, GivenOptions
from spark_analysis.data_sources.source import FileReader, TableSource, TakesFilters
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import LOG_RECORDS, LOG_TABLES

NAME: Final = "kafka_log"
OPTIONS: Final = (
    "table",
    "mode",
    *FILTER_OPTIONS,
    "values",
    "read_committed",
    "pushdown",
    "ignoreMissingFiles",
    "task_bytes",
)


class KafkaLogSource(TableSource):
    """Describe the data source kafka_log to Spark."""

    NAME, TABLES, OPTIONS = NAME, LOG_TABLES, OPTIONS

    def reader_of(self, given: GivenOptions, table: Table, columns: tuple[str, ...]) -> DataSourceReader:
        """Return a reader of segments, which takes a query's filters with the option `pushdown`."""
        request = LogRequest(
            table,
            columns,
            given.choice("mode", MODES),
            LogFilter.of(given),
            given.flag("values", True),
            given.flag("read_committed", False),
        )
        reader = FilteredKafkaLogReader if given.flag("pushdown", False) else KafkaLogReader
        return reader(request, given)


class KafkaLogReader(FileReader):
    """Read segments, a task each if they are large."""

    def __init__(self, request: LogRequest, given: GivenOptions) -> None:
        super().__init__(partial(segment_batches, request), log_segments(given.paths()), given)
        self.request = request

    def wants(self, one: LogSegment) -> bool:
        """Return whether a segment may hold wanted records."""
        return self.request.wanted.wants_segment(one)


class FilteredKafkaLogReader(KafkaLogReader, TakesFilters):
    """Read segments, leaving out what the filters of a query exclude."""

    def narrow(self, column: str, relation: str, value: Any) -> None:
        """Leave out records by their topic, partition, offset or time."""
        if self.request.table == LOG_RECORDS:
            wanted = self.request.wanted.narrowed(column, relation, value)
            self.request = attrs.evolve(self.request, wanted=wanted)
            self.read_inputs = partial(segment_batches, self.request)
