"""`brokerside outage`: what it prints, writes and refuses, and its exit statuses."""

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
KRAFT = str(REAL / "kraft-4.3" / "__cluster_metadata-0")


def outage(*arguments: str) -> int:
    return run(brokerside, "brokerside", ["outage", *arguments])


def test_every_outage_is_shown_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outage(KRAFT, "--out", str(tmp_path / "out")) == 0
    shown = capsys.readouterr().out
    assert "kraft-4.3: 3 brokers in 3 racks, 25 partitions" in shown
    assert "The worst 5 of each kind, of 3 brokers, 3 pairs, 3 racks, 6 rack and brokers" in shown
    assert max(map(len, shown.splitlines()[2:20])) <= 100
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [
        "answer.json",
        "copysets.parquet",
        "fatal_sets.parquet",
        "outage.json",
        "outages_of_brokers.parquet",
        "outages_of_pairs.parquet",
        "outages_of_racks.parquet",
        "outages_of_racks_and_brokers.parquet",
        "states.parquet",
    ]
    pairs = pq.read_table(tmp_path / "out" / "outages_of_pairs.parquet").to_pylist()
    assert [(row["broker_id"], row["other_broker_id"], row["leaderless_count"]) for row in pairs] == [
        (1, 2, 8),
        (1, 3, 2),
        (2, 3, 2),
    ]


def test_json_has_the_worst_sets_and_the_counts_of_fatal_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert outage(KRAFT, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["set_count"] == {"brokers": 3, "pairs": 3, "racks": 3, "racks_and_brokers": 6}
    assert found["worst"]["pairs"][0]["leaderless_count"] == 8
    assert found["worst"]["brokers"][0]["at_risk_bytes"] is None
    assert [each["fatal_count"] for each in found["fatal_sets"]] == [2, 3, 1]
    assert found["now"]["leaderless_count"] == 0


def test_lost_brokers_and_racks_are_lost_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert outage(BASELINE, *RACKS, "--lose", "rack=west", "--lose", "3", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lost"] == [1, 2, 3]
    assert found["then"]["leaderless_count"] == 6
    assert found["must_return"]["without_elr"] == {"broker_ids": [], "order_matters_count": 6}
    assert outage(BASELINE, *RACKS, "--lose", "1-2") == 0
    assert "Without ELR no single broker must return; for 6 partitions it depends on" in capsys.readouterr().out


def test_what_is_wrong_already_comes_before_any_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = str(REAL / "reported" / "c-sole-in-sync.txt")
    assert outage(dump) == 0
    assert (
        "At risk, without a leader, under min.insync.replicas already, before anything is lost: 2 partitions\n"
        "  bookings: 2 of 4 partitions\n"
        "  bookings-0, bookings-1\n"
    ) in capsys.readouterr().out
    assert outage(dump, "--lose", "32", "--out", str(tmp_path / "out"), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    for name in ("at_risk", "leaderless", "under_min_isr"):
        assert (found["states"][name]["now_count"], found["states"][name]["count"]) == (
            2,
            found["then"][f"{name}_count"],
        )
    rows = pq.read_table(tmp_path / "out" / "states.parquet").to_pylist()
    assert [(row["partition"], row["at_risk_now"], row["leaderless"]) for row in rows] == [
        (0, True, True),
        (1, True, True),
    ]


def test_what_a_loss_does_is_listed_by_topic_and_the_first_ten_partitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outage(KRAFT, "--lose", "1,2", "--out", str(tmp_path / "out")) == 0
    shown = capsys.readouterr().out
    assert "At risk, without a leader then: 8 partitions, of which 0 in trouble already\n" in shown
    assert "  cordoned: 4 of 4 partitions; lone: 3 of 3 partitions; audit: 1 of 3 partitions\n" in shown
    assert "Under min.insync.replicas then: 14 partitions" in shown
    assert "orders-0, orders-1; --out FOLDER writes all 14\n" in shown
    assert pq.read_table(tmp_path / "out" / "states.parquet").num_rows == 14
    assert outage(KRAFT, "--lose", "1,2", "--json") == 0
    states = json.loads(capsys.readouterr().out)["states"]
    assert states["at_risk"]["topics"][2] == {"topic": "audit", "count": 1, "partition_count": 3}
    assert len(states["under_min_isr"]["partitions"]) == 10
    assert outage(BASELINE, "--json") == 0
    assert json.loads(capsys.readouterr().out)["states"]["at_risk"]["count"] == 0


def describe(replicas: list[list[int]]) -> str:
    """Return what kafka-topics prints of one topic, each partition led by its first replica."""
    lines = [f"Topic: t\tTopicId: x\tPartitionCount: {len(replicas)}\tReplicationFactor: {len(replicas[0])}\tConfigs: "]
    for number, row in enumerate(replicas):
        listed = ",".join(map(str, row))
        lines.append(f"\tTopic: t\tPartition: {number}\tLeader: {row[0]}\tReplicas: {listed}\tIsr: {listed}")
    return "\n".join(lines) + "\n"


@pytest.mark.deep
def test_the_chance_of_loss_is_shown_however_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """66 copysets of 3 brokers, none in common, are 66 of 198 * 197 * 196 / 6 sets of three: 0.000052."""
    dump = tmp_path / "dump.txt"
    cases = (
        (describe([[3 * row + 1, 3 * row + 2, 3 * row + 3] for row in range(66)]), ["0.00%", "0.00%", "5.2e-05"]),
        (describe([[1, 2], [2, 3]]), ["0.00%", "66.67%"]),
    )
    for text, chances in cases:
        dump.write_text(text)
        assert outage(str(dump)) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        start = lines.index(["brokers", "sets", "fatal", "minimal", "probability"]) + 1
        assert [line[-1] for line in lines[start : start + len(chances)]] == chances
        assert lines[start + len(chances)] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--fail-on", "broker"), "losing broker 1: 1 partition at-risk, 0 now (2 of 3 make it worse)"),
        (("--fail-on", "pair:no-replica"), "losing broker 1 and broker 2: 8 partitions no-replica, 0 now"),
        (("--lose", "1", "--fail-on", "lost:leaderless"), "losing broker 1: 1 partition leaderless, 0 now"),
    ],
)
def test_a_gate_that_fails_is_status_1(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert outage(KRAFT, *arguments) == 1
    assert f"brokerside: failed: {sentence}" in capsys.readouterr().err


def test_gates_that_hold_are_status_0_and_what_is_not_known_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert outage(KRAFT, "--lose", "3", "--fail-on", "lost") == 0
    assert outage(BASELINE, "--fail-on", "broker") == 0
    plan = str(REAL / "topicmappr" / sorted(path.name for path in (REAL / "topicmappr").glob("*.json"))[0])
    assert outage(plan, "--fail-on", "broker:under-min-isr") == 1
    assert "broker: the input does not show which partitions would be under-min-isr" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--lose", "77"), "broker 77 is not one of cluster 1-baseline; there are 1, 2, 3, 4"),
        (
            ("--lose", "rack=x"),
            "--lose 'rack=x': no broker is in rack 'x'; the racks of 1-baseline are none; --racks gives them",
        ),
        (("--lose", "a"), "broker list has 'a'; allowed are ids and ranges, such as 0-5,7"),
        (("--fail-on", "lost"), "--fail-on 'lost': the scope lost is judged only with --lose"),
        (
            ("--lose", "1", "--fail-on", "rack"),
            "--fail-on 'rack': the scope rack is judged only without --lose; with it the scope is lost",
        ),
        (
            ("--fail-on", "rack:x"),
            "--fail-on is 'rack:x'; allowed is a list with commas of SCOPE[:STATE], SCOPE one of broker, pair, rack, "
            "rack-and-broker, lost, STATE one of at-risk, leaderless, under-min-isr, no-replica",
        ),
    ],
)
def test_wrong_input_is_one_sentence_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert outage(BASELINE, *arguments) == 2
    assert capsys.readouterr().err == f"brokerside: {sentence}\n"
