"""`brokerside plan` where partitions have no leader, or their preferred replica is offline."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside

LED = "a 0 1 2,1 2,1|a 1 1 3,1 3,1|a 2 1 1,2 1,2|off 0 2 3,2 2 3|off 1 none 3 3 3"
DEAD = "a 0 2 1,2,3 2,3|a 1 2 2,3,4 2,3,4|a 2 3 3,4,1 3,4|a 3 4 4,3 4,3|"
KEYS = ("Topic", "Partition", "Leader", "Replicas", "Isr", "Offline")


def plan(folder: Path, capsys: pytest.CaptureFixture[str], rows: str, *options: str) -> tuple[int, str]:
    """Return the status and what is printed; `rows` are topic, partition, leader, replicas, ISR and offline."""
    lines = [zip(KEYS, row.split(), strict=False) for row in rows.split("|")]
    dump = folder / "d.txt"
    dump.write_text("".join("".join(f"\t{key}: {value}" for key, value in line) + "\n" for line in lines))
    status = run(brokerside, "brokerside", ["plan", str(dump), "--partial", *options])
    shown = capsys.readouterr()
    return status, shown.out + shown.err


def test_a_partition_without_a_leader_is_led_by_nobody_and_an_offline_replica_is_not_preferred(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four partitions are led: an election of two preferred leaders makes brokers even, and no order changes."""
    status, shown = plan(tmp_path, capsys, LED, "--only-leaders")
    leaders = [line.split()[-2:] for line in shown.splitlines() if line[:2] in ("1 ", "2 ", "3 ")]
    assert leaders == [["3", "1"], ["1", "2"], ["0", "1"]]
    assert "2 partitions not led by the preferred leader" in shown
    assert "partitions that change          0 " in shown
    assert status == 0


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("a 4 none 1 1", "broker 1 must return, or give up the records: delete the topic\n"),
        ("a 4 none 1,2 1", "broker 1 must return, or give up the records: delete the topic, or hold an unclean"),
    ],
)
def test_a_drain_is_refused_where_nobody_is_left_to_copy_from(
    last: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = plan(tmp_path, capsys, DEAD + last, "--goal", "drain", "--remove", "1")
    assert status == 1, shown
    assert "1 partition without a leader (a-4): nothing can be copied to new replicas; " + said in shown


def test_a_partition_without_a_leader_stays_where_it_is_though_others_move(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = plan(tmp_path, capsys, DEAD + "a 4 none 1,2 1", "--goal", "add", "--add", "7,8,9")
    assert status == 0
    assert "cannot complete" not in shown


@pytest.mark.parametrize(
    ("rows", "down", "said"),
    [
        (DEAD + "a 4 2 2,1 2", "1", "gone for good: plan --goal drain --remove 1\n"),
        (DEAD + "a 4 2 2,1 2", "3", "gone for good: a drain is refused as things stand (a-0 needs 3 live brokers"),
        (DEAD + "a 4 none 1 1", "1", "(1 partition without a leader (a-4)"),
    ],
)
def test_a_drain_is_advised_only_where_its_plan_is_made(
    rows: str, down: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = plan(tmp_path, capsys, rows, "--down", down)
    assert status == 0
    assert said in shown
    drained, _ = plan(tmp_path, capsys, rows, "--down", down, "--goal", "drain", "--remove", down)
    assert drained == (0 if "plan --goal drain" in said else 1)
