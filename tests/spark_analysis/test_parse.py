"""Dumps out of any DataFrame of files: the rows are those of the data source, and a stream reads each dump once."""

from __future__ import annotations

import bz2
import gzip
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from broker.errors import UsageError
from placement.formats.parsed import ParsedDump
from spark_analysis import parse, register
from spark_analysis.data_sources.dump_rows import DumpRequest
from spark_analysis.examples.streamed_history import append_new
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.tables.schemas import CLUSTER_TABLES
from tests.spark_analysis.data_sources.dumps import REAL, describe, write

KRAFT = REAL / "kraft" / "describe"
LOG = REAL / "kraft" / "__cluster_metadata-0"


def files_of(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("binaryFile").load(str(path))


def rows(frame: DataFrame) -> list[str]:
    """The rows as text in order, without where they were read."""
    return sorted(str(row) for row in frame.drop("source", "fault").toArrow().to_pylist())


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Dumps plain and compressed, a metadata log of one file, and a file that is no dump."""
    for place, dump in enumerate(sorted(KRAFT.glob("*.txt"))):
        content = dump.read_bytes()
        forms = (("", content), (".gz", gzip.compress(content)), (".bz2", bz2.compress(content)))
        ending, data = forms[place % len(forms)]
        tmp_path.joinpath(dump.name + ending).write_bytes(data)
    write(tmp_path / "shopping.txt", "milk\nbread\n")
    shutil.copy(LOG / "00000000000000000000.log", tmp_path / "log.bin")
    return tmp_path


@pytest.mark.parametrize("table", ["partitions", "brokers", "inputs"])
def test_files_of_any_dataframe_give_the_rows_of_the_data_source(spark: SparkSession, dumps: Path, table: str) -> None:
    register(spark)
    found = getattr(parse, table)(files_of(spark, dumps))
    of_source = spark.read.format("kafka_cluster").option("table", table).load(str(dumps))
    is_good = "fault is null"
    assert rows(found.where(is_good)) == rows(of_source.where(is_good))
    assert found.schema == of_source.schema
    faults = [frame.where("fault is not null").collect() for frame in (found, of_source)]
    ours, theirs = ([row["fault"].partition("shopping.txt")[2][:60] for row in some] for some in faults)
    assert ours == theirs
    assert len(ours) == 1


def test_a_column_names_the_clusters_and_what_makes_no_sense_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "eu" / "prod.txt", describe(3))
    files = files_of(spark, tmp_path / "eu")
    by_column = parse.partitions(files.selectExpr("*", "'shop' as cluster"))
    by_folder = parse.partitions(files, parse.Parsing(cluster="{folder}-{file}"))
    names = [frame.select("cluster").distinct().collect() for frame in (parse.partitions(files), by_column, by_folder)]
    assert [[row["cluster"] for row in some] for some in names] == [["prod"], ["shop"], ["eu-prod"]]
    for frame, parsing, text in (
        (files.drop("content"), parse.Parsing(), "the DataFrame of files has no column 'content'; it has path, "
         "modificationTime, length"),
        (files.selectExpr("path", "1 as content"), parse.Parsing(),
         "column 'content' of the DataFrame of files is int; binary is needed"),
        (files, parse.Parsing(mode="LENIENT"), "mode is 'LENIENT'; allowed are PERMISSIVE, DROPMALFORMED, FAILFAST"),
        (files, parse.Parsing(cluster="{name}"),
         "option 'cluster' is '{name}'; allowed in braces are {file} and {folder}, not {name}"),
    ):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            parse.partitions(frame, parsing)
        assert str(caught.value) == text


def test_a_stream_appends_each_dump_once_over_a_restart_in_the_middle(spark: SparkSession, tmp_path: Path) -> None:
    dumps, history, checkpoint = (str(tmp_path / name) for name in ("dumps", "history", "checkpoint"))
    write(tmp_path / "dumps" / "a.txt", describe(3))
    append_new(spark, dumps, history, checkpoint, once=True).awaitTermination()
    write(tmp_path / "dumps" / "b.txt", describe(5))
    append_new(spark, dumps, history, checkpoint, once=True).awaitTermination()
    # Spark notes a finished batch in `commits`; without its note the second one was cut off before it ended.
    for note in Path(checkpoint, "commits").glob("*1*"):
        note.unlink()
    write(tmp_path / "dumps" / "c.txt", describe(4))
    append_new(spark, dumps, history, checkpoint, once=True).awaitTermination()
    found = spark.read.parquet(history).select("cluster", "partition_count").collect()
    assert sorted((row["cluster"], row["partition_count"]) for row in found) == [("a", 3), ("b", 5), ("c", 4)]


def test_the_rows_of_every_table_come_of_one_parsing(spark: SparkSession, dumps: Path) -> None:
    files = files_of(spark, dumps)
    parsed = parse.tables(files).persist()
    for name in ("partitions", "brokers", "inputs"):
        found, expected = parse.rows_of(parsed, name), getattr(parse, name)(files)
        assert found.columns == expected.columns
        assert rows(found) == rows(expected)
    total = parse.rows_of(parsed, "inputs").selectExpr(
        "sum(rows_in) as n", "sum(rows_analysed) as good", "sum(rows_rejected) as bad"
    ).collect()[0]  # fmt: skip
    assert total["n"] == total["good"] + total["bad"]
    assert total["bad"] == parse.rows_of(parsed, "rejects").count() == 1
    parsed.unpersist()
    with pytest.raises(UsageError, match="there is no table 'nosuch' of parsed files; there are partitions, brokers"):
        parse.rows_of(parsed, "nosuch")


def test_each_file_is_parsed_once_for_all_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    whole = parse.read_content

    def counted(dump: DumpInput, content: bytes) -> ParsedDump:
        read.append(dump.path)
        return whole(dump, content)

    monkeypatch.setattr(parse, "read_content", counted)
    requests = [DumpRequest(table, table.column_names, "PERMISSIVE") for table in CLUSTER_TABLES]
    files = pa.RecordBatch.from_pydict(
        {"path": ["/a/prod.txt", "/a/bad.txt"], "content": [describe(3).encode(), b"milk"]}
    )
    found = pa.Table.from_batches(parse._batches(requests, parse.Parsing(), None, [files]))
    assert read == ["/a/prod.txt", "/a/bad.txt"]
    assert found.column_names == [table.name for table in CLUSTER_TABLES]
