"""Rows of groups: every row of every file is a row or a fault, in each table and each mode."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker.errors import InputError
from spark_analysis.data_sources.group_batches import ClusterFiles, GroupRequest, group_batches
from spark_analysis.data_sources.options import DROP, PERMISSIVE
from spark_analysis.tables.schemas import GROUP_TABLES
from tests.placement.formats.test_group_tables import printed, rows_of

DAMAGED = {
    "members-verbose": ("orders:2,3,4,5                      3", "orders:2,3,4,x                      3"),
    "offsets": ("355             545             190", "3x5             545             190"),
    "state": ("Stable               2", "Stable               -"),
}
TABLE_OF = {"members-verbose": "members", "offsets": "offsets", "state": "states"}


def rows(paths: list[Path], table: str = "members", mode: str = PERMISSIVE, **more: Any) -> list[dict[str, Any]]:
    chosen = next(each for each in GROUP_TABLES if each.name == table)
    request = GroupRequest(chosen, chosen.column_names, mode, **more)
    batches = list(group_batches(request, [ClusterFiles("prod", tuple(map(str, paths)), 0)]))
    schema = pa.schema([(field.name, field.type) for field in chosen.arrow_schema()])
    return pa.Table.from_batches(batches, schema).to_pylist()


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Return a file of each form with one damaged row each, one compressed, one of another tool, one that is gone."""
    for form, (before, after) in DAMAGED.items():
        assert before in printed(form)
        (tmp_path / f"{form}.txt").write_text(printed(form).replace(before, after, 1))
    with gzip.open(tmp_path / "offsets.txt.gz", "wb") as file:
        file.write((tmp_path / "offsets.txt").read_bytes())
    (tmp_path / "other.txt").write_text("Topic: orders\n")
    names = ("members-verbose.txt", "offsets.txt.gz", "state.txt", "other.txt", "gone.txt")
    return [tmp_path / name for name in names]


@pytest.mark.parametrize("form", list(DAMAGED))
def test_rows_in_are_rows_out_and_faults(files: list[Path], form: str) -> None:
    (path,) = (path for path in files if path.name.startswith(form))
    found = rows([path], TABLE_OF[form])
    assert len(found) == len(rows_of(printed(form)))
    (fault,) = (row for row in found if row["fault"] is not None)
    assert fault["fault"].startswith(f"{path}:")
    assert {name for name, value in fault.items() if value is not None} == {"source", "fault"}


def test_members_of_all_files_of_a_cluster_have_zones(tmp_path: Path) -> None:
    for form in ("members", "offsets", "state"):
        (tmp_path / f"{form}.txt").write_text(printed(form))
    zones = tmp_path / "zones.csv"
    zones.write_text("client_id,zone\nb-1,east\nn-*,west\n")
    found = rows(sorted(tmp_path.glob("*.txt")), zones=str(zones))
    assert [row["fault"] for row in found] == [None] * 4
    assert {row["client_id"]: row["rack"] for row in found} == {
        "b-1": "east",
        "b-2": None,
        "n-1": "west",
        "n-2": "west",
    }
    first = next(row for row in found if row["client_id"] == "b-1")
    assert first["held"] == ["eu-west-1.payments-2", "orders-3", "orders-4", "orders-5"]
    assert (first["group"], first["topics"], first["host"], first["assignor"], first["cluster"]) == (
        "billing group",
        ["eu-west-1.payments", "orders"],
        "127.0.0.1",
        "range",
        "prod",
    )
    zones.write_text("b-1\n")
    with pytest.raises(InputError, match=r"zones\.csv:1: a line of a zones file is host,zone"):
        rows(sorted(tmp_path.glob("*.txt")), mode=DROP, zones=str(zones))
