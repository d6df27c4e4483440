"""Share what the data sources have in common: the option `table`, the user's schema, and a group of inputs a task.

Source: pyspark.sql.datasource, 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_analysis.data_sources.options import GivenOptions
from spark_analysis.data_sources.spark_types import chosen_columns, spark_schema_of
from spark_analysis.tables.columns import Table

TASK_BYTES_MAX: Final = 1 << 40


class TableSource(DataSource):
    """Describe a data source of several tables to Spark: its name, its schema, its reader."""

    NAME: ClassVar[str]
    TABLES: ClassVar[Sequence[Table]]
    """The tables that the option `table` names, the default first."""
    OPTIONS: ClassVar[Sequence[str]]

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return cls.NAME

    def schema(self) -> StructType:
        """Return the schema of the table that the options name."""
        return spark_schema_of(self._table(self._given()))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns in `schema`; raise UsageError for options that make no sense."""
        given = self._given()
        table = self._table(given)
        return self.reader_of(given, table, chosen_columns(self.NAME, table, schema))

    def reader_of(self, given: GivenOptions, table: Table, columns: tuple[str, ...]) -> DataSourceReader:
        """Return a reader of these columns of a table."""
        raise NotImplementedError

    def _given(self) -> GivenOptions:
        return GivenOptions.of(self.NAME, self.options, self.OPTIONS)

    def _table(self, given: GivenOptions) -> Table:
        name = given.choice("table", [table.name for table in self.TABLES])
        return next(table for table in self.TABLES if table.name == name)


class TaskReader(DataSourceReader):
    """Read groups of inputs, a task each."""

    def __init__(self, read: Callable[[Any], Iterator[pa.RecordBatch]], groups: Sequence[Sequence[Any]]) -> None:
        self._read = read
        self._groups = groups

    def partitions(self) -> Sequence[InputPartition]:
        """Return the groups of inputs, one for each task."""
        return [InputPartition(group) for group in self._groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one group of inputs; runs on an executor."""
        return self._read(partition.value)
