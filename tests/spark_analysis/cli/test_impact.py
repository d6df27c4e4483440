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


def sizes_of(folder: Path, single: int) -> str:
    """Return the path of sizes: `single` bytes of the topic single-region, one byte of each other topic."""
    sizes = folder / "sizes.json"
    topics = {"single-region": single, "multi-region-sync": 1, "multi-region-async": 1, "multi-region-default": 1}
    others = ("-op-under-min-isr", "-op-under-replicated", "-op-leader-is-observer")
    topics |= {f"multi-region-async{name}": 1 for name in others}
    sizes.write_text(json.dumps({topic: {"0": {"Size": size}} for topic, size in topics.items()}))
    return str(sizes)


def test_a_copy_that_never_ends_is_said_with_its_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Clients produce 150 bytes a second to what moves, over links of 100; a quiet batch takes its own time."""
    capacity = tmp_path / "capacity.csv"
    arguments = ["--sizes", sizes_of(tmp_path, 10**9), "--capacity", str(capacity)]
    plans = [plan(tmp_path, MOVE), plan(tmp_path, {**MOVE, "replicas": [2, 1]}, name="back.json")]
    for ingress, time, first in ((150, ", never ends", "never ends"), (0, ", at least 231 d 11 h", "115 d 17 h")):
        capacity.write_text(f"broker,network_in,network_out,ingress\n-1,100,100,{ingress}\n")
        assert impact(BASELINE, *plans, *arguments) == (1 if ingress else 0)
        shown = capsys.readouterr().out
        verdict, heading, *_ = shown.splitlines()
        assert verdict.startswith("2 findings against this plan" if ingress else "Nothing speaks against this plan")
        assert heading.endswith(f" to copy{time}")
        assert next(line for line in shown.splitlines() if line.startswith("1  ")).endswith(f"  {first}")


def test_a_plan_for_another_state_is_said_and_is_no_bad_news(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "made.txt"
    one = '{"version":1,"partitions":[{"topic":"single-region","partition":0,"replicas":%s}]}'
    for now, said in (([4, 2], 1), ([1, 2], 0)):
        made.write_text(
            f"Current partition replica assignment\n{one % now}\n\n"
            f"Proposed partition reassignment configuration\n{one % [3, 2]}\n"
        )
        assert impact(BASELINE, str(made)) == 0
        wanted = "was made for another state: it names other replicas before for 1 of its 1 partitions."
        found = [line for line in capsys.readouterr().out.splitlines() if wanted in line]
        assert [line[:2] for line in found] == ["- "] * said


def test_json_and_tables_have_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    arguments = [
        BASELINE,
        plan(tmp_path, MOVE),
        "--sizes",
        sizes_of(tmp_path, 1000),
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
        "directories.parquet",
        "measures.parquet",
        "partitions.parquet",
    ]


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
