"""What somebody changes in a plan's files, the check sees where input, plan or certificate say otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark_analysis.cli.test_plan import described, plan


@pytest.fixture(params=["described", "bare"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A plan in two batches, each with its election, and one of others; of a dump with ISR and leaders, or without."""
    rows = [[2, 1], [2, 1], [1, 2], [1, 2]]
    if request.param == "described":
        text = described("orders", rows * 2) + described("users", [[4, 3]]).replace("Leader: 4", "Leader: 3")
    else:
        entries = [{"topic": "orders", "partition": n, "replicas": row} for n, row in enumerate(rows * 2)]
        entries.append({"topic": "users", "partition": 0, "replicas": [4, 3]})
        text = json.dumps({"version": 1, "partitions": entries})
    (tmp_path / "prod.txt").write_text(text)
    out = tmp_path / "out"
    assert plan(str(tmp_path / "prod.txt"), "--add", "5", "--batches", "2", "--out", str(out)) == 0
    assert plan("--check", str(out)) == 0
    return out


def said(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the check says of a folder that is not right."""
    capsys.readouterr()
    assert plan("--check", str(folder)) == 1
    return capsys.readouterr().err


def rewritten(path: Path, change: Callable[[Any], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def an_election(folder: Path) -> Path:
    return next(path for path in sorted(folder.glob("preferred-election-0*.json")))


def test_an_emptied_election_is_seen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = an_election(folder)
    rewritten(path, lambda value: value["partitions"].clear())
    assert f"{path.name}: orders-" in said(folder, capsys)
    path.unlink()
    assert " is missing\n" in said(folder, capsys)
    path.mkdir()
    assert plan("--check", str(folder)) == 2
    assert capsys.readouterr().err.endswith(f"{path.name}: is not a regular file\n")


def test_a_partition_elected_twice_or_for_nothing_is_seen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = an_election(folder)
    first = json.loads(path.read_text())["partitions"][0]
    rewritten(path, lambda value: value["partitions"].append(first))
    name = f"{first['topic']}-{first['partition']}"
    assert said(folder, capsys) == f"brokerside: failed: {path.name}: {name} is listed twice\n"
    batch = json.loads((folder / path.name.replace("preferred-election", "batch")).read_text())["partitions"]
    elected = [first, *json.loads(path.read_text())["partitions"]]
    calm = [one for one in batch if {"topic": one["topic"], "partition": one["partition"]} not in elected]
    if calm:
        entry = {"topic": calm[0]["topic"], "partition": calm[0]["partition"]}
        path.write_text(json.dumps({"partitions": [*json.loads(path.read_text())["partitions"][:-1], entry]}))
        assert f"{path.name}: {entry['topic']}-{entry['partition']} needs no election" in said(folder, capsys)


def test_an_election_of_no_batch_is_seen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "preferred-election-07.json").write_text(an_election(folder).read_text())
    assert "preferred-election-07.json is of no batch" in said(folder, capsys)


def test_the_election_of_others_is_as_the_plan_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = described("orders", [[1, 2], [2, 1]]).replace("Leader: 1", "Leader: 2") + described("users", [[3, 1]])
    (tmp_path / "prod.txt").write_text(text)
    out = tmp_path / "out"
    assert plan(str(tmp_path / "prod.txt"), "--goal", "drain", "--remove", "3", "--out", str(out)) == 0
    path = out / "preferred-election-others.json"
    right = path.read_text()
    rewritten(path, lambda value: value["partitions"].clear())
    assert said(out, capsys) == "brokerside: failed: preferred-election-others.json: orders-0 is missing\n"
    rewritten(path, lambda value: value["partitions"].extend([{"topic": "orders", "partition": n} for n in (0, 1)]))
    assert "preferred-election-others.json: orders-1 needs no election" in said(out, capsys)
    path.write_text(right)
    commands = out / "commands.txt"
    commands.write_text(commands.read_text().replace("preferred-election-others", "preferred-election-other"))
    found = said(out, capsys)
    assert "commands.txt runs preferred-election-others.json 0 times\n" in found
    assert "commands.txt runs preferred-election-other.json 1 time, which is not there\n" in found


def test_an_election_before_its_batch_is_seen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, commands = an_election(folder), folder / "commands.txt"
    lines = commands.read_text().splitlines()
    (elect,) = [line for line in lines if line.endswith(path.name)]
    lines.remove(elect)
    commands.write_text("\n".join([elect, *lines]) + "\n")
    batch = path.name.replace("preferred-election", "batch")
    assert said(folder, capsys) == f"brokerside: failed: commands.txt runs {path.name} before {batch}\n"


def test_versions_and_directories_that_are_gone_or_others_are_seen(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("plan.json", "batch-01.json", "rollback.json"):
        path = folder / name
        right = path.read_text()
        count = len(json.loads(right)["partitions"])
        rewritten(path, lambda value: value.pop("version"))
        assert said(folder, capsys) == f"brokerside: failed: {name} states no version, which is 1\n"
        path.write_text(right)
        rewritten(path, lambda value: value["partitions"][0].pop("log_dirs"))
        plural = "entry" if count == 1 else "entries"
        assert said(folder, capsys) == f"brokerside: failed: {name}: 1 of {count} {plural} states no log_dirs\n"
        path.write_text(right)
        rewritten(path, lambda value: value["partitions"][0]["log_dirs"].__setitem__(0, "/data/7"))
        assert f"{name} names log directory /data/7; a plan names none" in said(folder, capsys)
        path.write_text(right)


def test_the_summary_is_the_one_of_the_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "summary.json"
    right = path.read_text()
    for name, value in (
        ("broker_count", 7),
        ("partition_count", 1),
        ("replica_count", 1),
        ("changed_partition_count", 99),
        ("is_least", False),
        ("batch_count", 9),
    ):
        rewritten(path, lambda summary, name=name, value=value: summary.__setitem__(name, value))
        assert f"summary.json says {name} is {value}; it is " in said(folder, capsys)
        rewritten(path, lambda summary, name=name: summary.pop(name))
        assert f"summary.json does not say {name}" in said(folder, capsys)
        path.write_text(right)
    changes: tuple[Callable[[Any], object], ...] = (
        lambda summary: summary.__setitem__("cluster", "other"),
        lambda summary: summary["notes"].append("All is well."),
        lambda summary: summary["goal"].__setitem__("kind", "racks"),
        lambda summary: summary.__setitem__("seconds_bound", 7.5),
    )
    for change in changes:
        rewritten(path, change)
        assert "summary.json is not the one that the certificate was written with" in said(folder, capsys)
        path.write_text(right)


def test_who_is_in_sync_is_part_of_the_certificate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pq.read_table(folder / "input.parquet")
    place, rows = table.column_names.index("isr"), [[1]] * table.num_rows
    pq.write_table(table.set_column(place, "isr", pa.array(rows, pa.list_(pa.int32()))), folder / "input.parquet")
    assert "who is in sync in input.parquet is not as the certificate was made for" in said(folder, capsys)


def test_a_folder_of_before_is_checked_by_what_it_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the later columns and digests a partition whose new first replica does not lead must still be elected."""
    table = pq.read_table(folder / "input.parquet").drop_columns(["isr", "offline"])
    pq.write_table(table, folder / "input.parquet")
    rewritten(folder / "certificate.json", lambda value: [value.pop(name) for name in ("summary_sha256", "isr_sha256")])
    assert plan("--check", str(folder)) == 0
    an_election(folder).unlink()
    found = said(folder, capsys)
    assert "commands.txt runs " in found
