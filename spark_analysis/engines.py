"""Run a kernel, and write the tables that it finds: what an engine does, and the one that needs no Spark.

A kernel (kernels.py) is a generator: numbers go in, and batches of rows of many tables come out. Here they are written
by pyarrow; spark_engine.py gives the same batches to Spark's own writer. Both engines make equal tables.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import attrs
import pyarrow as pa

from broker.cluster import Int64Array
from spark_analysis.kernels import Kernel
from spark_analysis.tables.batching import TableBatch
from spark_analysis.tables.columns import Table
from spark_analysis.tables.place import Place, table_path
from spark_analysis.tables.scan import scan_batches
from spark_analysis.tables.schemas import WORK
from spark_analysis.tables.write import (
    TableFile,
    arrow_to_table,
    hidden_folder,
    publish,
    remove_table,
)


class Found(Protocol):
    """Hold what a kernel has found."""

    def compute(self) -> None:
        """Run the kernel on all parts of the work."""

    def rows(self, table: Table) -> pa.Table:
        """Return the rows of a table of `WORK`, in the order of the work."""

    def write(self, table: Table, out: Place, *, clusters: Int64Array | None = None) -> None:
        """Write the rows of a table under `out`, those of `clusters` alone if given, instead of what is there."""


class Engine(Protocol):
    """Run kernels and write tables."""

    def found(self, kernel: Kernel, parts: Sequence[range], out: Place) -> AbstractContextManager[Found]:
        """Return what the kernel finds on each part of the work, to be computed; it is gone when the block ends."""

    def done_share(self) -> float:
        """Return the share of the work that is done, 0 to 1; another thread may ask."""

    def write(self, rows: pa.Table, table: Table, out: Place) -> None:
        """Write rows that were made in this process as `table` under `out`, instead of what is there."""

    def remove(self, table: Table, out: Place) -> None:
        """Remove a table of an earlier run."""

    def finish(self) -> None:
        """Append all tables that were written to a catalog, if the engine has one; what was found is still there."""


@attrs.define
class LocalEngine:
    """Run kernels in this process."""

    _done: int = attrs.field(default=0, init=False)
    _count: int = attrs.field(default=1, init=False)
    _open_count: int = attrs.field(default=0, init=False)

    @contextlib.contextmanager
    def found(self, kernel: Kernel, parts: Sequence[range], out: Place) -> Iterator[Found]:
        """Return what the kernel finds on each part of the work; tables wait in a hidden folder beside their places."""
        self._done, self._count = 0, sum(map(len, parts)) or 1
        self._open_count += 1
        try:
            with hidden_folder(Path(out), f"run-{self._open_count}") as root:
                yield LocalFound(root, lambda: (batch for part in parts for batch in kernel(self._counted(part))))
        finally:
            self._open_count -= 1

    def done_share(self) -> float:
        """Return the share of the work that is done, 0 to 1; another thread may ask."""
        return self._done / self._count

    def write(self, rows: pa.Table, table: Table, out: Place) -> None:
        """Write rows that were made in this process as `table` under `out`, instead of what is there."""
        arrow_to_table(rows, table, Path(out), overwrite=True)

    def remove(self, table: Table, out: Place) -> None:
        """Remove a table of an earlier run."""
        remove_table(Path(out), table.name)

    def finish(self) -> None:
        """Do nothing: a catalog needs Spark."""

    def _counted(self, part: range) -> Iterator[int]:
        for number in part:
            yield number
            self._done += 1


@attrs.define
class LocalFound:
    """Hold what kernels have found: tables of `WORK` in memory, all others as files in a hidden folder."""

    _root: Path
    _batches: Callable[[], Iterator[TableBatch]]
    _files: dict[str, TableFile] = attrs.field(factory=dict)
    _work: dict[str, list[pa.RecordBatch]] = attrs.field(factory=lambda: {table.name: [] for table in WORK})

    def compute(self) -> None:
        """Run the kernel on all parts of the work."""
        for table, batch in self._batches():
            if table.name in self._work:
                self._work[table.name].append(batch)
            else:
                self._file(table).append(batch)

    def rows(self, table: Table) -> pa.Table:
        """Return the rows of a table of `WORK`, in the order of the work."""
        return pa.Table.from_batches(self._work[table.name], table.arrow_schema())

    def write(self, table: Table, out: Place, *, clusters: Int64Array | None = None) -> None:
        """Write the rows of a table under `out`, those of `clusters` alone if given, instead of what is there."""
        self._file(table).close()
        fresh = self._root / table.name
        if clusters is not None:
            chosen = TableFile(self._root / f"{table.name}.chosen", table)
            for batch in scan_batches(fresh, table, clusters=clusters):
                chosen.append(batch)
            chosen.close()
            fresh = self._root / f"{table.name}.chosen"
        publish(fresh, table_path(Path(out), table))

    def _file(self, table: Table) -> TableFile:
        if table.name not in self._files:
            self._files[table.name] = TableFile(self._root / table.name, table)
        return self._files[table.name]
