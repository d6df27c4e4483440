"""Share what the data sources have in common: the option `table`, the user's schema, and a group of inputs a task.

Source: pyspark.sql.datasource, 4.3.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from spark_analysis.data_sources.options import GivenOptions
from spark_analysis.data_sources.spark_types import chosen_columns, spark_schema_of
from spark_analysis.tables.columns import Table

TASK_BYTES: Final = 64 << 20  # Some seconds of reading: a task itself costs a tenth of one.
TASK_BYTES_MAX: Final = 1 << 40
LISTING_OPTIONS: Final = ("recursiveFileLookup", "pathGlobFilter", "ignoreMissingFiles", "task_bytes")


RELATIONS: Final[dict[type[Filter], str]] = {
    EqualTo: "=",
    In: "in",
    LessThan: "<",
    LessThanOrEqual: "<=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
}
Comparison: TypeAlias = EqualTo | In | LessThan | LessThanOrEqual | GreaterThan | GreaterThanOrEqual


def grouped(inputs: Sequence[Any], task_bytes: int = TASK_BYTES) -> list[list[Any]]:
    """Return the inputs, whose `size_bytes` is known, in groups of about `task_bytes`, in order."""
    groups: list[list[Any]] = []
    held_bytes = 0
    for one in inputs:
        size_bytes = one.size_bytes
        if not groups or held_bytes + size_bytes > task_bytes:
            groups.append([])
            held_bytes = 0
        groups[-1].append(one)
        held_bytes += size_bytes
    return groups


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
        self.read_inputs = read
        self._groups = groups

    def partitions(self) -> Sequence[InputPartition]:
        """Return the groups of inputs, one for each task."""
        return [InputPartition(group) for group in self._groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one group of inputs; runs on an executor."""
        return self.read_inputs(partition.value)


class FileReader(TaskReader):
    """Read files, small ones together: with the option ignoreMissingFiles those that are there when they are read."""

    def __init__(self, read: Callable[[Any], Iterator[pa.RecordBatch]], inputs: Sequence[Any], given: GivenOptions):
        super().__init__(read, ())
        self._inputs = inputs
        self._task_bytes = given.number("task_bytes", low=1, high=TASK_BYTES_MAX) or TASK_BYTES
        self._ignores_missing = given.flag("ignoreMissingFiles", False)

    def wants(self, one: Any) -> bool:
        """Return whether rows of an input are asked for."""
        return True

    def there(self, one: Any) -> Any:
        """Return an input if it is still there, else None."""
        return one if os.path.lexists(one.path) else None

    def partitions(self) -> Sequence[InputPartition]:
        """Return the wanted inputs, those of one task together; one empty task if there is none."""
        wanted = [one for one in self._inputs if self.wants(one)]
        return [InputPartition(group) for group in grouped(wanted, self._task_bytes) or [[]]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one group of inputs; runs on an executor."""
        return self.read_inputs(
            filter(None, map(self.there, partition.value)) if self._ignores_missing else partition.value
        )


class TakesFilters(FileReader):
    """Read inputs, leaving out what the filters of a query exclude; Spark applies them as well."""

    def narrow(self, column: str, relation: str, value: Any) -> None:
        """Leave out what `column` `relation` `value` excludes; a relation is one of RELATIONS."""
        raise NotImplementedError

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name.
        """Leave out what the filters exclude, and return all of them."""
        for each in filters:
            if isinstance(each, Comparison):
                self.narrow(".".join(each.attribute), RELATIONS[type(each)], each.value)
        return filters
