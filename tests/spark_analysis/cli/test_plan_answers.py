"""`brokerside plan` on inputs of public reports: who is kept, who leads, and what a plan leaves alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside

REAL = Path(__file__).parents[2] / "real_data"
REPORTED = REAL / "reported"
LINE = "\tTopic: {topic}\tPartition: {n}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}\n"


class Answer:
    """What `plan` answers, and what stands in its folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.folder = folder
        self.status = run(brokerside, "brokerside", ["plan", *arguments, "--out", str(folder)])
        self.shown, self.error = capsys.readouterr()
        if self.status == 0:
            assert run(brokerside, "brokerside", ["plan", "--check", str(folder)]) == 0
            capsys.readouterr()

    @property
    def rows(self) -> dict[tuple[str, int], list[int]]:
        """The target of each partition that changes."""
        listed = json.loads((self.folder / "plan.json").read_text())["partitions"]
        return {(each["topic"], each["partition"]): each["replicas"] for each in listed}

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return found

    def column(self, name: str) -> dict[int, Any]:
        """A column of brokers.parquet by broker."""
        return {row["broker"]: row[name] for row in pq.read_table(self.folder / "brokers.parquet").to_pylist()}


def described(topic: str, rows: list[tuple[int, list[int], list[int]]], configs: str = "") -> str:
    """Return what kafka-topics prints of a topic: leader, replicas and ISR of each partition."""
    head = f"Topic: {topic}\tPartitionCount: {len(rows)}\tReplicationFactor: {len(rows[0][1])}\tConfigs: {configs}\n"
    return head + "".join(
        LINE.format(topic=topic, n=n, leader=leader, replicas=",".join(map(str, replicas)), isr=",".join(map(str, isr)))
        for n, (leader, replicas, isr) in enumerate(rows)
    )


def test_a_factor_drops_dead_replicas_first_and_copies_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five replicas, two of them in sync: the other three brokers are dead."""
    found = Answer(tmp_path, capsys, str(REPORTED / "b-factor-over-dead.txt"), "--goal", "factor", "--factor", "2")
    assert list(found.rows.values()) == [[21, 22], [22, 21], [21, 22], [22, 21]]
    assert (found.summary["moved"], found.summary["leader_changes"]) == (0, 0)


def test_a_factor_keeps_replicas_in_sync_and_the_leader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One partition has a replica too many, which is out of sync; the others have as many as asked, and stay."""
    found = Answer(tmp_path, capsys, str(REPORTED / "51-cmak-795.txt"), "--goal", "factor", "--factor", "3")
    assert found.rows == {("Test", 2): [100, 101, 102]}
    assert (found.summary["moved"], found.summary["leader_changes"]) == (0, 0)


@pytest.mark.parametrize(
    ("leader", "replicas", "isr", "factor", "target"),
    [
        (2, [1, 2, 3], [2, 3], 1, [2]),  # The leader stays, though it is not preferred.
        (2, [1, 2, 3], [1, 2, 3], 2, [1, 2]),  # The leader and the preferred leader.
        (2, [1, 2, 3], [2, 3], 2, [2, 3]),  # Broker 1 is alive (it leads elsewhere), but out of sync here.
        (2, [1, 2, 9], [1, 2], 2, [1, 2]),  # Broker 9 is in no ISR.
        (1, [1, 9], [1], 3, [1, 9]),  # More replicas than now go to live brokers; what is dead stays.
    ],
)
def test_who_is_kept(
    leader: int,
    replicas: list[int],
    isr: list[int],
    factor: int,
    target: list[int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = described("b", [(1, [1, 2], [1, 2]), (2, [2, 3], [2, 3]), (3, [3, 1], [3, 1])])
    (tmp_path / "d.txt").write_text(described("a", [(leader, replicas, isr)]) + others)
    found = Answer(
        tmp_path / "out",
        capsys,
        str(tmp_path / "d.txt"),
        *("--goal", "factor", "--factor", str(factor), "--exclude-topic", "b"),
    )
    row = found.rows["a", 0]
    assert row[: len(target)] == target
    assert len(row) == factor
    assert set(row[len(target) :]) <= {2, 3}


@pytest.mark.parametrize(
    ("factor", "rows", "configs", "said"),
    [
        (
            1,
            [(1, [1, 2], [1, 2])],
            "min.insync.replicas=2",
            "topic a has min.insync.replicas 2: with 1 replica brokers ask for no more than 1 in sync",
        ),
        (
            2,
            [(1, [1, 2, 3], [1])],
            "",
            "would not come to 2 replicas: of a-0 1 of 3 replicas is in sync, and Kafka waits",
        ),
        (2, [("none", [1], [1])], "", "would not come to 2 replicas: a-0 has no leader to copy from"),
        (
            5,
            [(1, [1, 2], [1, 2])],
            "",
            "a-0 needs 5 live brokers, and 3 remain; 2 more, or a smaller factor (--factor 3)",
        ),
    ],
)
def test_a_factor_that_would_stop_writes_or_never_be_reached_is_refused_with_the_numbers(
    factor: int, rows: list[Any], configs: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = described("b", [(1, [1, 2], [1, 2]), (2, [2, 3], [2, 3]), (3, [3, 1], [3, 1])])
    (tmp_path / "d.txt").write_text(described("a", rows, configs) + others)
    arguments = ("--goal", "factor", "--factor", str(factor), "--exclude-topic", "b")
    found = Answer(tmp_path / "out", capsys, str(tmp_path / "d.txt"), *arguments)
    assert found.status == 1
    assert said in found.error
    assert not (tmp_path / "out").exists()


def test_a_drain_moves_what_stands_there_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No partition is on as many racks as it could be; the drain of broker 5 does not restore them, goal racks does."""
    rows = [(1 + n % 2, [1 + n % 2, 3 + n % 2], [1 + n % 2, 3 + n % 2]) for n in range(40)]
    rows += [(5, [5, 1], [5, 1]), (2, [2, 5], [2, 5]), (3, [3, 5], [3, 5])]
    (tmp_path / "d.txt").write_text(described("a", rows))
    racks = {1: "x", 2: "y", 3: "x", 4: "y", 5: "z", 6: "z", 7: "x"}
    (tmp_path / "racks.csv").write_text("".join(f"{number},{rack}\n" for number, rack in racks.items()))
    given = (
        str(tmp_path / "d.txt"),
        "--racks",
        str(tmp_path / "racks.csv"),
        "--remove",
        "5",
        "--add",
        "6:z",
        "--add",
        "7:x",
    )
    found = Answer(tmp_path / "drain", capsys, *given, "--goal", "drain")
    assert {name: [each for each in row if each != 5] for name, row in found.rows.items()} == found.rows
    assert set(found.rows) == {("a", 40), ("a", 41), ("a", 42)}
    assert (found.summary["moved"], found.summary["moved_bound"], found.summary["leader_changes"]) == (3, 3, 1)
    for (_, number), row in found.rows.items():
        kept = [each for each in rows[number][1] if each != 5]
        assert set(kept) < set(row)
        assert set(row) & {6, 7}  # The empty brokers, and on another rack.
        assert len({racks[each] for each in row}) == 2
    assert (
        "At least: of plans after which broker 5 is empty, and in which no replica moves that can stay." in found.shown
    )
    assert Answer(tmp_path / "racks", capsys, *given, "--goal", "racks").summary["moved"] > 3


def test_leaders_of_new_brokers_come_out_even_where_all_replicas_move(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--goal", "drain", "--remove", "1001,1002,1003", "--add", "1004,1005,1006")
    found = Answer(tmp_path, capsys, str(REPORTED / "33-kafkakit-281.json"), *arguments)
    led = found.column("leaders_after")
    assert sorted(led[number] for number in (1004, 1005, 1006)) == [1, 1, 2]
    assert sorted(found.column("replicas_after").values()) == [0, 0, 0, 2, 3, 3]


def test_where_one_broker_leads_all_the_step_is_an_election_and_now_is_who_leads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Answer(tmp_path, capsys, str(REPORTED / "g-one-leads-all.txt"), "--only-leaders")
    assert found.column("leaders_before") == {1: 0, 2: 6, 3: 0}
    assert found.column("leaders_after") == {1: 2, 2: 2, 3: 2}
    assert "leads now  preferred then" in found.shown
    assert (found.rows, found.summary["leader_changes"], found.summary["leader_changes_least"]) == ({}, 4, 4)
    assert "a preferred leader election is the step: kafka-leader-election.sh" in found.shown
    elected = json.loads((tmp_path / "preferred-election-others.json").read_text())["partitions"]
    assert [each["partition"] for each in elected] == [1, 2, 4, 5]
    assert "--path-to-json-file preferred-election-others.json" in (tmp_path / "commands.txt").read_text()


def test_a_broker_that_is_full_because_of_its_rack_is_named_with_what_one_more_there_would_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (str(REPORTED / "25.json"), "--racks", str(REPORTED / "25-racks.csv"))
    said = "broker 6 must hold 10 replicas at a mean of 4.3, as rack rack2 has 1 broker of 7"
    more = "with one broker more in rack2, each there holds 5 and others 3 to 4"
    found = Answer(tmp_path / "now", capsys, *given)
    assert said in found.shown
    assert more in found.shown
    grown = Answer(tmp_path / "grown", capsys, *given, "--goal", "add", "--add", "7:rack2")
    after = grown.column("replicas_after")
    assert [after[6], after[7]] == [5, 5]
    assert {after[number] for number in range(6)} == {3, 4}
    assert "must hold" not in grown.shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--goal", "drain", "--remove", "1"), "partitions ("),
        (("--goal", "factor", "--factor", "2"), "on cordoned broker 3, which Kafka refuses since 4.4 (KAFKA-20832)"),
    ],
)
def test_partitions_on_a_cordoned_broker_stay_as_they_are_or_are_refused(
    arguments: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broker 3 of the real cluster is cordoned at offset 200."""
    kraft = (str(REAL / "kraft-4.3" / "__cluster_metadata-0"), "--at", "200")
    refused = Answer(tmp_path / "refused", capsys, *kraft, *arguments)
    assert refused.status == 1
    assert said in refused.error
    assert "uncordon it, or remove it too (--remove " in refused.error
    found = Answer(tmp_path / "balance", capsys, *kraft, "--goal", "balance")
    back = json.loads((tmp_path / "balance" / "rollback.json").read_text())["partitions"]
    assert not any(3 in row for row in found.rows.values())
    assert not any(3 in each["replicas"] for each in back)
