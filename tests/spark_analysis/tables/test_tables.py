"""Result tables on disk: what is written is what the schema says, whole, and the same for equal rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from broker.errors import InputError, UsageError
from spark_analysis.tables import write as tables
from spark_analysis.tables.columns import Table
from spark_analysis.tables.place import table_path
from spark_analysis.tables.schemas import RACKS, REJECTS, TABLES
from spark_analysis.tables.write import arrow_to_table, read_table, spark_schema_json

RACK_ROWS = [
    (0, "classic", None, 1, 3, 1, 9, 3, 3, 1, 1, 9, 9),
    (0, "classic", "a", 2, 5, 2, None, 2, 3, 1, 1, None, None),
    (1, "striped", "b", 2, 6, None, 12, 3, 3, None, None, 5, 7),
]


def racks(*changed: tuple[int, str, Any]) -> pa.Table:
    rows = [dict(zip(RACKS.column_names, row, strict=True)) for row in RACK_ROWS]
    for row, name, value in changed:
        rows[row][name] = value
    return pa.Table.from_pylist(rows, RACKS.arrow_schema())


def rejects(*lines: int | None) -> pa.Table:
    rows = [{"source": "f", "line": line, "reason": "r", "value": "v"} for line in lines]
    return pa.Table.from_pylist(rows, REJECTS.arrow_schema())


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_sparks_schema_has_the_names_nulls_and_meanings_of_ours(table: Table) -> None:
    schema = StructType.fromJson(json.loads(spark_schema_json(table)))
    plain = from_arrow_schema(table.arrow_schema())
    assert [(field.name, field.dataType) for field in schema] == [(field.name, field.dataType) for field in plain]
    for field, column in zip(schema, table.columns, strict=True):
        assert field.nullable == column.nullable
        named = {} if column is not table.columns[0] else {"table": table.name}
        assert field.metadata == {"comment": column.comment} | ({"unit": column.unit} if column.unit else {}) | named


def test_rows_and_meanings_come_back_to_pyarrow_and_duckdb(tmp_path: Path) -> None:
    assert arrow_to_table(racks(), RACKS, tmp_path) == 3
    back = read_table(tmp_path, RACKS)
    assert back.equals(racks(), check_metadata=True)
    some = read_table(tmp_path, RACKS, columns=["replica_count", "rack"], where=pc.field("cluster_id") == 0)
    assert some.to_pydict() == {"replica_count": [3, 5], "rack": [None, "a"]}
    folder = table_path(tmp_path, RACKS)
    field = pq.read_schema(folder / "part-00000.parquet").field("broker_count")
    assert (field.metadata, field.nullable) == ({b"comment": b"Brokers in the rack", b"unit": b"brokers"}, False)
    asked = f"""
        select decode(value) from parquet_kv_metadata('{folder}/*.parquet') where decode(key) = 'brokerside.columns'
    """
    answer = duckdb.sql(asked).fetchall()
    assert json.loads(answer[0][0])["broker_count"] == {"comment": "Brokers in the rack", "unit": "brokers"}
    assert arrow_to_table(RACKS.arrow_schema().empty_table(), RACKS, tmp_path / "empty") == 0
    assert read_table(tmp_path / "empty", RACKS).equals(RACKS.arrow_schema().empty_table())


def test_equal_rows_give_equal_bytes_whatever_their_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROW_GROUP_ROWS", 4)
    whole = rejects(*range(11))
    assert arrow_to_table(pa.Table.from_batches(whole.to_batches(max_chunksize=3)), REJECTS, tmp_path) == 11
    path = table_path(tmp_path, REJECTS) / "part-00000.parquet"
    assert pq.ParquetFile(path).num_row_groups == 3
    assert arrow_to_table(whole, REJECTS, tmp_path / "whole") == 11
    assert (table_path(tmp_path / "whole", REJECTS) / "part-00000.parquet").read_bytes() == path.read_bytes()
    assert read_table(tmp_path, REJECTS).equals(whole)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (racks((1, "broker_count", None)), "table racks: column broker_count may not be null"),
        (racks((2, "placer", None)), "table racks: column placer may not be null"),
        (
            racks().select(["placer", "cluster_id"]),
            "table racks has the columns cluster_id int64, placer string, rack string, broker_count int32, "
            "replica_count int64, leader_count int64, size_bytes int64, replica_count_best_min int64, "
            "replica_count_best_max int64, leader_count_best_min int64, leader_count_best_max int64, "
            "size_bytes_best_min int64, size_bytes_best_max int64; not placer string, cluster_id int64",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_the_earlier_table_stays(
    rows: pa.Table, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        arrow_to_table(rows, RACKS, tmp_path)
    assert str(caught.value) == sentence
    assert not (tmp_path / "tables").exists()
    arrow_to_table(racks(), RACKS, tmp_path)
    with pytest.raises(UsageError):
        arrow_to_table(rows, RACKS, tmp_path, overwrite=True)
    assert read_table(tmp_path, RACKS).num_rows == 3
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["racks"]


def test_an_earlier_table_is_replaced_only_when_allowed(tmp_path: Path) -> None:
    left = tmp_path / "tables" / ".rejects" / "rejects"
    left.mkdir(parents=True)
    (left / "part-00007.parquet").write_text("left by an interrupted run", encoding="utf-8")
    arrow_to_table(rejects(1), REJECTS, tmp_path)
    place = table_path(tmp_path, REJECTS)
    assert sorted(path.name for path in place.iterdir()) == ["_SUCCESS", "part-00000.parquet"]
    with pytest.raises(UsageError) as caught:
        arrow_to_table(rejects(2), REJECTS, tmp_path)
    assert str(caught.value) == f"{place} exists already; choose another folder, or allow to overwrite it"
    arrow_to_table(rejects(3, None), REJECTS, tmp_path, overwrite=True)
    assert read_table(tmp_path, REJECTS)["line"].to_pylist() == [3, None]
    assert [path.name for path in place.parent.iterdir()] == ["rejects"]


@pytest.mark.parametrize("name", ["notes.txt", "part-00000.parquet"])
def test_what_this_module_did_not_write_is_never_replaced(tmp_path: Path, name: str) -> None:
    place = table_path(tmp_path, REJECTS)
    place.mkdir(parents=True)
    (place / name).write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        arrow_to_table(rejects(1), REJECTS, tmp_path, overwrite=True)
    assert str(caught.value) == f"{place} holds something else than table rejects; it is left as it is"
    assert (place / name).read_text(encoding="utf-8") == "mine"
    arrow_to_table(rejects(1), REJECTS, tmp_path / "other")
    table_path(tmp_path / "other", REJECTS).rename(table_path(tmp_path / "other", RACKS))
    with pytest.raises(UsageError, match="holds something else than table racks"):
        arrow_to_table(racks(), RACKS, tmp_path / "other", overwrite=True)


def test_a_table_that_is_not_there_or_has_other_columns_is_named(tmp_path: Path) -> None:
    place = table_path(tmp_path, REJECTS)
    with pytest.raises(InputError) as caught:
        read_table(tmp_path, REJECTS)
    assert str(caught.value) == f"{place}: there is no table rejects"
    place.mkdir(parents=True)
    pq.write_table(pa.table({"source": ["f"]}), place / "part-00000.parquet")
    (place / "_SUCCESS").touch()
    with pytest.raises(InputError) as caught:
        read_table(tmp_path, REJECTS)
    assert str(caught.value) == f"{place / 'part-00000.parquet'}: its columns are not those of table rejects"
