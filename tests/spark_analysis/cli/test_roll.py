"""`brokerside roll`: what it prints, writes and refuses, and its exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside

REAL = Path(__file__).parents[2] / "real_data"
BASELINE = str(REAL / "multiregion" / "1-baseline.txt")
KRAFT = str(REAL / "kraft-4.3" / "__cluster_metadata-0")
RACKED = "broker,rack\n1,a\n2,b\n3,a\n4,b\n"


def roll(*arguments: str) -> int:
    return run(brokerside, "brokerside", ["roll", *arguments])


def describe(rows: list[str], topic: str = "t") -> str:
    lines = [f"Topic: {topic}\tPartitionCount: {len(rows)}\tReplicationFactor: 2\tConfigs: min.insync.replicas=1"]
    for number, row in enumerate(rows):
        lines.append(f"\tTopic: {topic}\tPartition: {number}\tLeader: {row[0]}\tReplicas: {row}\tIsr: {row}")
    return "\n".join(lines) + "\n"


def test_a_schedule_is_shown_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert roll(KRAFT, "--out", str(tmp_path / "out")) == 0
    shown = capsys.readouterr().out
    assert "3 batches; proven by weights of the brokers: no schedule has fewer" in shown
    assert "1      1     1 (all of zone-a)" in shown
    assert "Partitions that cannot keep min.insync.replicas, whatever the order: 2" in shown
    assert "  lone: 2 partitions; 1 more in-sync replica would do\n" in shown
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [
        "answer.json",
        "batches.parquet",
        "costly_partitions.parquet",
        "roll.json",
        "stuck_partitions.parquet",
    ]
    assert pq.read_table(tmp_path / "out" / "batches.parquet")["batch"].to_pylist() == [1, 2, 3]
    stuck = pq.read_table(tmp_path / "out" / "stuck_partitions.parquet")
    assert set(stuck["topic"].to_pylist()) == {"lone"}


def test_the_partitions_that_cost_batches_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump, racks = tmp_path / "d.txt", tmp_path / "r.csv"
    dump.write_text(describe(["1,2", "3,4", "1,4", "3,2"] * 5 + ["1,3"]))
    racks.write_text(RACKED)
    assert roll(str(dump), "--racks", str(racks)) == 0
    assert "Move or grow this and it takes 2 batches instead of 3: t-20" in capsys.readouterr().out
    assert roll(str(dump), "--racks", str(racks), "--max-batch", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["batch_count"] == 4


GONE = str(REAL / "kraft-4.3" / "describe" / "7-brokers-2-and-3-gone.txt")


def test_brokers_gone_are_refused_with_what_would_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert roll(GONE, "--json", "--out", str(tmp_path / "out")) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert not (tmp_path / "out").exists()
    assert printed.err == (
        "brokerside: 22 of 26 partitions are at or under min.insync.replicas because replicas are out of sync, on "
        "brokers 2 (21 replicas, in no ISR), 3 (16 replicas, in no ISR); bring these brokers back and wait until every "
        "replica is in sync, or give --despite-out-of-sync, which restarts the brokers of each of these partitions one "
        "at a time; if they are gone for good: a drain is refused as things stand (__share_group_state-0 needs 3 live "
        "brokers, and 1 remains; 2 more, or a smaller factor (--factor 1))\n"
    )


def test_despite_replicas_out_of_sync_there_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert roll(GONE, "--despite-out-of-sync") == 0
    shown = capsys.readouterr().out
    assert "WARNING: 22 partitions have replicas out of sync on brokers 2, 3 and nothing to lose" in shown
    assert "7-brokers-2-and-3-gone: restart at most 1 at once; 3 brokers, 26 partitions\n" in shown
    assert "left out (in no ISR): brokers 2, 3\n" in shown
    assert roll(GONE, "--despite-out-of-sync", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["batches"] == [[1]]
    assert found["out_of_sync_partition_count"] == 22


def test_the_first_line_says_how_many_at_once_and_who_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump, racks = tmp_path / "d.txt", tmp_path / "r.csv"
    dump.write_text(describe(["1,2", "3,4", "1,4", "3,2"] * 5))
    racks.write_text(RACKED)
    (log,) = (REAL / "kraft").glob("__cluster_metadata-0")
    assert roll(str(dump), "--racks", str(racks)) == 0
    assert capsys.readouterr().out.startswith("d: restart at most 2 at once; 4 brokers, 20 partitions\n")
    assert roll(str(log), "--despite-out-of-sync", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["batch_broker_count_max"] == max(map(len, found["batches"]))


def test_where_every_broker_is_down_nothing_restarts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "d.txt"
    dump.write_text(describe(["1,2", "2,1"]).replace("Leader: 1", "Leader: none").replace("Leader: 2", "Leader: none"))
    assert roll(str(dump), "--despite-out-of-sync") == 0
    shown = capsys.readouterr().out
    assert "d: no broker restarts; 2 brokers, 2 partitions\n" in shown
    assert "left out (only in the ISR of partitions without a leader): brokers 1, 2" in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--controllers", "9"), "controller 9 is not one of the brokers of 1-baseline"),
        (("--controllers", "x"), "broker list has 'x'; allowed are ids and ranges, such as 0-5,7"),
    ],
)
def test_wrong_input_is_one_sentence_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert roll(BASELINE, *arguments) == 2
    assert capsys.readouterr().err == f"brokerside: {sentence}\n"
