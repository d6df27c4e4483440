"""`brokerside impact`: what it prints, writes and refuses, and its exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside

REAL = Path(__file__).parents[2] / "real_data"
BASELINE = str(REAL / "multiregion" / "1-baseline.txt")
STOPPED = str(REAL / "multiregion" / "3-west-region-stopped.txt")
RACKS = ("--racks", str(REAL / "multiregion-racks.csv"))
MOVE = {"topic": "single-region", "partition": 0, "replicas": [3, 2]}
TURN = {"topic": "multi-region-async", "partition": 0, "replicas": [1, 2, 3, 4]}


def impact(*arguments: str) -> int:
    return run(brokerside, "brokerside", ["impact", *arguments])


def plan(folder: Path, *entries: object, name: str = "plan.json") -> str:
    path = folder / name
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return str(path)


def test_a_plan_is_shown_with_brokers_and_measures_before_and_after(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert impact(BASELINE, plan(tmp_path, MOVE, TURN), *RACKS) == 0
    shown = capsys.readouterr().out
    assert "1-baseline: changes 2 partitions, 1 of them only in order; 1 new replica, – to copy" in shown
    assert "Times are not known without --throttle" in shown
    assert "leaders by broker: max over mean" in shown
    assert max(map(len, shown.splitlines())) <= 120


def test_json_and_tables_have_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = tmp_path / "sizes.json"
    topics = {"single-region": 1000, "multi-region-sync": 1, "multi-region-async": 1, "multi-region-default": 1}
    others = ("-op-under-min-isr", "-op-under-replicated", "-op-leader-is-observer")
    topics |= {f"multi-region-async{name}": 1 for name in others}
    sizes.write_text(json.dumps({topic: {"0": {"Size": size}} for topic, size in topics.items()}))
    out = tmp_path / "out"
    arguments = [
        BASELINE,
        plan(tmp_path, MOVE),
        "--sizes",
        str(sizes),
        "--throttle",
        "100",
        "--out",
        str(out),
        "--json",
    ]
    assert impact(*arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["moved_bytes"], found["seconds"], found["never_ends"]) == (1000, 10.0, False)
    assert found == json.loads((out / "impact.json").read_text())
    brokers = pq.read_table(out / "brokers.parquet").to_pylist()
    assert brokers == found["brokers"]
    assert [row["bytes_out"] for row in brokers] == [0, 1000, 0, 0]
    assert sorted(path.name for path in out.glob("*.parquet")) == [
        "batches.parquet",
        "brokers.parquet",
        "measures.parquet",
        "partitions.parquet",
    ]


def test_several_plans_are_batches_in_their_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    back = plan(tmp_path, {**MOVE, "replicas": [2, 1]}, name="back.json")
    assert impact(BASELINE, plan(tmp_path, MOVE), back, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [batch["moved_replica_count"] for batch in found["batches"]] == [1, 1]
    assert [row["replica_count_before"] == row["replica_count_after"] for row in found["brokers"]] == [True] * 4


def test_a_blocked_partition_is_bad_news_on_4_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = plan(tmp_path, {"topic": "multi-region-sync", "partition": 0, "replicas": [4, 3, 2]})
    assert impact(STOPPED, blocked, "--kafka", "4.2") == 1
    assert "! Will not complete on 4.2" in capsys.readouterr().out


def test_an_entry_that_kafka_refuses_is_bad_news_and_the_rest_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert impact(BASELINE, plan(tmp_path, MOVE, {**TURN, "replicas": [9]})) == 1
    printed = capsys.readouterr()
    assert (
        "1 of 2 entries were put aside; the first: partitions[1]: broker 9 is not in cluster 1-baseline" in printed.err
    )
    assert "! kafka-reassign-partitions refuses the whole file" in printed.out
    assert impact(BASELINE, plan(tmp_path, {**MOVE, "replicas": [9, 2]}), "--add", "9:west", *RACKS) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--throttle", "0"), "--throttle is 0; a rate is at least 1 byte a second"),
        (("--throttle", "fast"), "size 'fast' is not a number of bytes, KiB, MiB, GiB, TiB, PiB or EiB"),
        (("--add", "x"), "--add is 'x'; the form is ID or ID:RACK, such as 7:rack-a"),
        (("--add", "3"), "--add '3': broker 3 is in cluster 1-baseline already"),
    ],
)
def test_wrong_options_are_refused_in_one_line(
    arguments: tuple[str, str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert impact(BASELINE, plan(tmp_path, MOVE), *arguments) == 2
    assert capsys.readouterr().err == f"brokerside: {words}\n"


def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert impact(BASELINE, BASELINE) == 2
    assert "holds no JSON object; a plan is kafka-reassign-partitions or" in capsys.readouterr().err
    assert impact(BASELINE, str(tmp_path / "absent.json")) == 2
