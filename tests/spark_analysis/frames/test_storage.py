"""What logs and replicas take is what `brokerside log stats` says, and what a count by hand finds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis import register
from spark_analysis.questions import storage
from spark_analysis.sources.dumps import read_input
from tests.log.cli.test_commands import answer
from tests.log.samples import DIRECTORY, SAMPLES, START_MS, write_sample
from tests.spark_analysis.frames.test_balance import DUMPS, found

NOW_MS = START_MS + 50_000


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with a topic for each sample."""
    root = tmp_path_factory.mktemp("logs")
    for sample in SAMPLES:
        write_sample(sample, root / "made" / sample)
        (root / "logs").mkdir(exist_ok=True)
        (root / "made" / sample / DIRECTORY).rename(root / "logs" / f"{sample}-3")
    return root / "logs"


def load(spark: SparkSession, path: Path, table: str) -> DataFrame:
    register(spark)
    return spark.read.format("kafka_log").options(table=table, values="false").load(str(path))


def stats(path: Path) -> dict[str, Any]:
    """What `brokerside log stats` says of all segments below a path."""
    lines = answer("stats", path, "--json", "--total-only", "--now-ms", NOW_MS).lines
    total: dict[str, Any] = json.loads(lines[-1])
    return total


def topics(logs: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for sample in SAMPLES:
        yield sample, stats(logs / f"{sample}-3")


def test_codecs_are_those_of_log_stats(spark: SparkSession, logs: Path) -> None:
    rows = found(storage.codecs(load(spark, logs, "batches")))
    assert {row["magic"] for row in rows} == {2}
    for topic, said in topics(logs):
        of = {row["codec"]: row for row in rows if row["topic"] == topic}
        assert {
            codec: {
                "batches": row["batch_count"],
                "records": row["record_count"],
                "storedBytes": row["stored_bytes"],
                "unpackedBytes": row["unpacked_bytes"],
            }
            for codec, row in of.items()
        } == {codec: {k: v for k, v in one.items() if k != "ratio"} for codec, one in said["codecs"].items()}
        times = said["timestamps"]
        assert min(row["min_timestamp_ms"] for row in of.values()) == times["min"]
        assert max(row["max_timestamp_ms"] for row in of.values()) == times["max"]


def test_keys_are_those_of_log_stats_with_values_left_out_and_with_them(spark: SparkSession, logs: Path) -> None:
    records = load(spark, logs, "records")
    rows = {row["topic"]: row for row in found(storage.keys(records))}
    assert sorted(rows) == sorted(SAMPLES)
    for topic, said in topics(logs):
        row, keys = rows[topic], said["keys"]
        assert (row["distinct_key_count"], row["null_key_count"]) == (keys["distinct"], keys["null"])
        assert row["tombstone_count"] == keys["tombstones"]
        assert (row["key_bytes"], row["value_bytes"]) == (said["keyBytes"], said["valueBytes"])
        assert row["record_count"] == said["records"]
        markers = said["transactions"]
        assert row["control_record_count"] == markers["commits"] + markers["aborts"]
        assert (row["min_timestamp_ms"], row["max_timestamp_ms"]) == tuple(
            said["timestamps"][name] for name in ("min", "max")
        )
    full = spark.read.format("kafka_log").load(str(logs)).drop("value_size_bytes")
    assert found(storage.keys(full)) == found(storage.keys(records))


def test_what_a_compaction_would_drop_is_what_log_stats_says(spark: SparkSession, logs: Path) -> None:
    rows = {row["topic"]: row for row in found(storage.compaction(load(spark, logs, "segments"), now_ms=NOW_MS))}
    for topic, said in topics(logs):
        row, gain = rows[topic], said["compaction"]
        assert row["partition"] == 3
        assert row["segment_count"] == len(list((logs / f"{topic}-3").glob("*.log")))
        assert (row["bytes_before"], row["bytes_after"]) == (gain["bytesBefore"], gain["bytesAfter"])
        assert row["bytes_dropped"] == gain["bytesBefore"] - gain["bytesAfter"]
        assert (row["records_before"], row["records_after"]) == (gain["recordsBefore"], gain["recordsAfter"])
        assert (row["keyless_count"], row["is_complete"]) == (gain["recordsWithoutKey"], gain["isComplete"])
        assert row["fault"] is None
    assert any(row["bytes_dropped"] > 0 for row in rows.values())


def test_rows_in_are_rows_analysed_and_rows_rejected(spark: SparkSession, tmp_path: Path) -> None:
    """A torn tail: its batch is a row of damage, not a row that vanishes."""
    write_sample("none", tmp_path)
    path = sorted((tmp_path / DIRECTORY).glob("*.log"))[0]
    path.write_bytes(path.read_bytes()[:-5])
    for frame, table, counted in (
        (storage.codecs, "batches", "batch_count"),
        (storage.keys, "records", "record_count"),
    ):
        given = load(spark, tmp_path, table)
        rows = found(frame(given))
        assert sum(row[counted] + row["rejected_count"] for row in rows) == given.count()
        assert sum(row["rejected_count"] for row in rows) == 1
        assert any(str(path) in (row["fault"] or "") for row in rows)
    (row,) = found(storage.compaction(load(spark, tmp_path, "segments"), now_ms=NOW_MS))
    assert row["bytes_dropped"] is None
    assert str(path) in row["fault"]


def test_records_and_segments_that_cannot_be_are_rejected_with_the_column(spark: SparkSession, logs: Path) -> None:
    records = load(spark, logs, "records").where("topic = 'zstd'")
    (answer,) = found(storage.keys(records))
    for value in ("null", "-5", "5000000000"):
        bad = records.limit(1).drop("value_size_bytes").selectExpr("*", f"cast({value} as bigint) as value_size_bytes")
        (row,) = found(storage.keys(records.unionByName(bad)))
        assert row["fault"] == f"value_size_bytes is {value}; allowed is -1 to 2147483647"
        assert (row["record_count"], row["rejected_count"]) == (answer["record_count"], 1)
        assert (row["value_bytes"], row["distinct_key_count"]) == (answer["value_bytes"], answer["distinct_key_count"])
    segments = load(spark, logs, "segments").where("topic = 'zstd'")
    for name, value, fault in (
        ("source", "cast(null as string)", "source is null; allowed is any text"),
        ("base_offset", "-1", "base_offset is -1; allowed is 0 to 9223372036854775807"),
        ("partition", "5000000000", "partition is 5000000000; allowed is 0 to 2147483647"),
    ):
        rows = found(storage.compaction(segments.drop(name).selectExpr("*", f"{value} as {name}"), now_ms=NOW_MS))
        assert [row["fault"] for row in rows] == [fault]
        assert sum(row["segment_count"] for row in rows) == segments.count()
    held = spark.createDataFrame(
        [("a", "t", 0, [1, 2], 30), ("b", "t", 0, [1, -2], 30), ("c", "t", 0, [1], -30), ("d", None, 0, [1], 30)],
        "cluster string, topic string, partition int, replicas array<int>, size_bytes long",
    )
    faults = {row["cluster"]: row["fault"] for row in storage.held(held).collect()}
    assert faults["a"] is None
    assert all(faults[name] for name in "bcd"), faults


def test_bytes_of_topics_on_brokers_are_a_count_by_hand(spark: SparkSession) -> None:
    register(spark)
    for dump in DUMPS[:2]:
        (view,) = read_input(str(dump), name=dump.stem).clusters
        frame = spark.read.format("kafka_cluster").option("mode", "DROPMALFORMED").load(str(dump))
        sized = frame.withColumn(
            "replica_size_bytes", F.expr("transform(replicas, (id, i) -> 1000L * id + partition + i)")
        )
        replicas, led, held = Counter[tuple[str, int]](), Counter[tuple[str, int]](), Counter[tuple[str, int]]()
        table = view.partitions
        assert table.leader is not None
        for row, leader, index, number in zip(
            table.replicas.tolist(), table.leader.tolist(), table.topic_index.tolist(), table.partition_ids.tolist(),
            strict=True,
        ):  # fmt: skip
            topic = view.topics[index].name
            led[topic, leader] += 1
            for place, broker in enumerate(one for one in row if one >= 0):
                replicas[topic, broker] += 1
                held[topic, broker] += 1000 * broker + number + place
        rows = found(storage.held(sized), "source", "cluster", "fault")
        assert {(row["topic"], row["broker_id"]): row["replica_count"] for row in rows} == replicas
        assert {(row["topic"], row["broker_id"]): row["size_bytes"] for row in rows} == held
        assert all(row["leader_count"] == led[row["topic"], row["broker_id"]] for row in rows)
        without = found(storage.held(frame), "source", "cluster", "fault")
        assert {row["size_bytes"] for row in without} == {None}
