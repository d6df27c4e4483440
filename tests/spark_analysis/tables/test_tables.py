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
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit, nullif, when
from pyspark.sql.pandas.types import from_arrow_schema

from broker.errors import InputError, UsageError
from spark_analysis.engines.frames import spark_schema, write_table
from spark_analysis.tables import write as tables
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import RACKS, REJECTS, TABLES, VIOLATIONS
from spark_analysis.tables.write import arrow_to_table, read_table, spark_schema_json, table_path

RACK_ROWS = [
    (1, "striped", "b", 2, 6, None, 12, 3, 3, None, None, 5, 7),
    (0, "classic", None, 1, 3, 1, 9, 3, 3, 1, 1, 9, 9),
    (0, "classic", "a", 2, 5, 2, None, 2, 3, 1, 1, None, None),
]


def racks(spark: SparkSession, rows: list[tuple[Any, ...]] | None = None) -> DataFrame:
    return spark.createDataFrame(RACK_ROWS if rows is None else rows, spark_schema(RACKS))


def rejects(*lines: int | None) -> pa.Table:
    rows = [{"source": "f", "line": line, "reason": "r", "value": "v"} for line in lines]
    return pa.Table.from_pylist(rows, REJECTS.arrow_schema())


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_sparks_schema_has_the_names_nulls_and_meanings_of_ours(table: Table) -> None:
    schema = spark_schema(table)
    assert [field.name for field in schema] == list(table.column_names)
    for field, column in zip(schema, table.columns, strict=True):
        assert field.nullable == column.nullable
        assert field.metadata == {"comment": column.comment} | ({"unit": column.unit} if column.unit else {})
    plain = from_arrow_schema(table.arrow_schema())
    assert [field.dataType for field in schema] == [field.dataType for field in plain]
    assert schema.json() == spark_schema_json(table)


def test_rows_come_back_sorted_and_with_the_schema_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    assert write_table(racks(spark), RACKS, tmp_path) == 3
    back = read_table(tmp_path, RACKS)
    assert back.schema.equals(RACKS.arrow_schema(), check_metadata=True)
    assert [tuple(row.values()) for row in back.to_pylist()] == [RACK_ROWS[1], RACK_ROWS[2], RACK_ROWS[0]]


def test_lists_come_back(spark: SparkSession, tmp_path: Path) -> None:
    row = (0, "classic", "distinct", "t", 3, [1, 1], ["a", ""], "twice on 1")
    write_table(spark.createDataFrame([row], spark_schema(VIOLATIONS)), VIOLATIONS, tmp_path)
    assert [tuple(row.values()) for row in read_table(tmp_path, VIOLATIONS).to_pylist()] == [row]


def test_meanings_are_seen_by_spark_pyarrow_and_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    write_table(racks(spark), RACKS, tmp_path)
    folder = table_path(tmp_path, RACKS)
    assert spark.read.parquet(str(folder)).schema["broker_count"].metadata == {
        "comment": "Brokers in the rack",
        "unit": "brokers",
    }
    field = pq.read_schema(folder / "part-00000.parquet").field("broker_count")
    assert field.metadata == {b"comment": b"Brokers in the rack", b"unit": b"brokers"}
    assert not field.nullable
    asked = f"""
        select decode(value) from parquet_kv_metadata('{folder}/*.parquet') where decode(key) = 'brokerside.columns'
    """
    answer = duckdb.sql(asked).fetchall()
    assert json.loads(answer[0][0])["broker_count"] == {"comment": "Brokers in the rack", "unit": "brokers"}


def test_equal_rows_give_equal_bytes_whatever_their_order_and_partitions(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        (cluster, "classic", f"r{rack}", 1, rack, cluster, None, rack, rack, cluster, cluster, None, None)
        for cluster in range(40)
        for rack in range(3)
    ]
    write_table(racks(spark, rows), RACKS, tmp_path / "a")
    write_table(racks(spark, rows[::-1]).repartition(5), RACKS, tmp_path / "b")
    parts = [
        {path.name: path.read_bytes() for path in table_path(tmp_path / run, RACKS).iterdir()} for run in ("a", "b")
    ]
    assert sorted(parts[0]) == ["part-00000.parquet"]
    assert parts[0] == parts[1]


def test_more_rows_than_a_row_group_are_all_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ROW_GROUP_ROWS", 4)
    whole = rejects(*range(11))
    batches = pa.Table.from_batches(whole.to_batches(max_chunksize=3))
    assert arrow_to_table(batches, REJECTS, tmp_path) == 11
    path = table_path(tmp_path, REJECTS) / "part-00000.parquet"
    assert pq.ParquetFile(path).num_row_groups == 3
    assert arrow_to_table(whole, REJECTS, tmp_path / "whole") == 11
    assert (table_path(tmp_path / "whole", REJECTS) / "part-00000.parquet").read_bytes() == path.read_bytes()
    assert read_table(tmp_path, REJECTS).equals(whole)


def test_an_empty_table_is_a_table(spark: SparkSession, tmp_path: Path) -> None:
    assert write_table(racks(spark, []), RACKS, tmp_path) == 0
    assert read_table(tmp_path, RACKS).equals(RACKS.arrow_schema().empty_table())


def test_only_the_columns_and_rows_asked_for_are_read(spark: SparkSession, tmp_path: Path) -> None:
    write_table(racks(spark), RACKS, tmp_path)
    read = read_table(tmp_path, RACKS, columns=["replica_count", "rack"], where=pc.field("cluster_id") == 0)
    assert read.to_pydict() == {"replica_count": [3, 5], "rack": [None, "a"]}


def test_a_null_where_none_may_be_is_refused_and_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    frame = racks(spark).withColumn("broker_count", when(col("cluster_id") == 0, col("broker_count")))
    with pytest.raises(UsageError) as caught:
        write_table(frame, RACKS, tmp_path)
    assert str(caught.value) == "table racks: column broker_count may not be null"
    assert not (tmp_path / "tables").exists()


def test_a_null_in_a_driver_made_table_is_refused_alike(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist([{"source": None, "line": 1, "reason": "r", "value": "v"}], REJECTS.arrow_schema())
    with pytest.raises(UsageError) as caught:
        arrow_to_table(rows, REJECTS, tmp_path)
    assert str(caught.value) == "table rejects: column source may not be null"


def test_columns_other_than_the_schemas_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    wanted = (
        "table racks has the columns cluster_id bigint, placer string, rack string, broker_count int, "
        "replica_count bigint, leader_count bigint, size_bytes bigint, replica_count_best_min bigint, "
        "replica_count_best_max bigint, leader_count_best_min bigint, leader_count_best_max bigint, "
        "size_bytes_best_min bigint, size_bytes_best_max bigint; not "
    )
    with pytest.raises(UsageError) as caught:
        write_table(racks(spark).select("placer", "cluster_id"), RACKS, tmp_path)
    assert str(caught.value) == wanted + "placer string, cluster_id bigint"
    assert not (tmp_path / "tables").exists()


def test_an_earlier_table_is_replaced_only_when_allowed(tmp_path: Path) -> None:
    arrow_to_table(rejects(1), REJECTS, tmp_path)
    with pytest.raises(UsageError) as caught:
        arrow_to_table(rejects(2), REJECTS, tmp_path)
    place = table_path(tmp_path, REJECTS)
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


def test_another_tables_files_are_not_replaced(tmp_path: Path) -> None:
    arrow_to_table(rejects(1), REJECTS, tmp_path)
    table_path(tmp_path, REJECTS).rename(table_path(tmp_path, RACKS))
    with pytest.raises(UsageError, match="holds something else than table racks"):
        arrow_to_table(RACKS.arrow_schema().empty_table(), RACKS, tmp_path, overwrite=True)


def test_a_failed_write_keeps_the_earlier_table(spark: SparkSession, tmp_path: Path) -> None:
    write_table(racks(spark), RACKS, tmp_path)
    nulls = racks(spark).withColumn("placer", nullif("placer", lit("classic")))
    with pytest.raises(UsageError):
        write_table(nulls, RACKS, tmp_path, overwrite=True)
    assert read_table(tmp_path, RACKS).num_rows == 3
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["racks"]


def test_files_of_attempts_that_failed_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "tables" / ".rejects" / "rejects"
    folder.mkdir(parents=True)
    (folder / "part-00007.parquet").write_text("left by an interrupted run", encoding="utf-8")
    arrow_to_table(rejects(1), REJECTS, tmp_path)
    assert [path.name for path in table_path(tmp_path, REJECTS).iterdir()] == ["part-00000.parquet"]


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_table(tmp_path, REJECTS)
    assert str(caught.value) == f"{table_path(tmp_path, REJECTS)}: there is no table rejects"


def test_a_table_with_other_columns_is_not_read(tmp_path: Path) -> None:
    place = table_path(tmp_path, REJECTS)
    place.mkdir(parents=True)
    pq.write_table(pa.table({"source": ["f"]}), place / "part-00000.parquet")
    with pytest.raises(InputError) as caught:
        read_table(tmp_path, REJECTS)
    assert str(caught.value) == f"{place / 'part-00000.parquet'}: its columns are not those of table rejects"
