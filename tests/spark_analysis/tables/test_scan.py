"""Rows of chosen clusters are read, row groups without them are not, and pyarrow.dataset stays out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_analysis.tables import scan, schemas
from spark_analysis.tables.scan import WHOLE_NAME, parquet_files, row_count, scan_batches, scan_table, sorted_rows

TABLE = schemas.RACKS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files: clusters 0 to 9 in row groups of two clusters, and cluster 4 once more."""
    for name, numbers in (("b", [4]), ("a", [number for number in range(10) for _ in range(3)])):
        rows = [{"cluster_id": number, "placer": "x", "rack": str(place)} for place, number in enumerate(numbers)]
        rows = [row | {"broker_count": 1, "replica_count": 2} for row in rows]
        pq.write_table(pa.Table.from_pylist(rows, schema=TABLE.arrow_schema()), tmp_path / f"{name}.parquet", 6)
    (tmp_path / ".hidden.parquet").write_bytes(b"")
    (tmp_path / WHOLE_NAME).touch()
    return tmp_path


@pytest.mark.parametrize("clusters", [[], [4], [0, 9], [3, 4, 5], [77], [-1, 12], list(range(10))])
def test_only_rows_of_the_chosen_clusters_are_read(folder: Path, clusters: list[int]) -> None:
    chosen = np.array(clusters, dtype=np.int64)
    whole = scan_table(folder, TABLE)
    found = pa.Table.from_batches(scan_batches(folder, TABLE, clusters=chosen), schema=TABLE.arrow_schema())
    assert found.to_pylist() == [row for row in whole.to_pylist() if row["cluster_id"] in clusters]
    assert whole.num_rows == row_count(folder) == 31
    assert whole["cluster_id"].to_pylist()[-1] == 4
    (batch, *_) = [*scan_batches(folder, TABLE, columns=("rack",), clusters=chosen)] or [None]
    assert batch is None or batch.schema.names == ["rack"]


def test_row_groups_without_the_clusters_are_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []

    class Counted(pq.ParquetFile):  # type: ignore[misc]  # pyarrow has no types.
        def iter_batches(self, *, row_groups: list[int], **more: Any) -> Any:
            asked.append(row_groups)
            return super().iter_batches(row_groups=row_groups, **more)

    monkeypatch.setattr(scan.pq, "ParquetFile", Counted)
    assert sum(batch.num_rows for batch in scan_batches(folder, TABLE, clusters=np.array([4, 9]))) == 7
    assert asked == [[2, 4], [0]]


def test_a_folder_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    assert parquet_files(tmp_path / "none") == [] == list(scan_batches(tmp_path / "none", TABLE))


def test_equals_keep_their_order() -> None:
    rows = pa.table({"a": [2, 1, 2, 1], "b": [0, 1, 2, 3]})
    assert sorted_rows(rows, ["a"])["b"].to_pylist() == [1, 3, 0, 2]


@pytest.mark.deep
def test_a_report_in_this_process_imports_no_data_sets(tmp_path: Path) -> None:
    program = (
        "import sys; from broker.cli import run; from spark_analysis.cli.commands import brokerside\n"
        "assert run(brokerside, 'brokerside', sys.argv[1:]) == 0\n"
        "sys.exit(', '.join({'pyarrow.dataset', 'pyarrow.acero'} & set(sys.modules)) or 0)"
    )
    dump = next((Path(__file__).parents[2] / "real_data" / "multiregion").glob("1-*.txt"))
    words = ["report", str(dump), "--quiet", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
