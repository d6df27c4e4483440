"""`brokerside impact` on inputs of public reports: what each plan does, and what holds it up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside

REPORTED = Path(__file__).parents[2] / "real_data" / "reported"
EXECUTED = (REPORTED / "e-execute.txt").read_text()
FORMER = EXECUTED[: EXECUTED.index("Successfully")]
STARTED = EXECUTED[EXECUTED.index("{", EXECUTED.index("Successfully")) :]


def impact(capsys: pytest.CaptureFixture[str], dump: str | Path, plan: str | Path, *options: str) -> dict[str, Any]:
    """Return the answer, its findings by name under "found", and the status."""
    status = run(brokerside, "brokerside", ["impact", str(REPORTED / dump), str(REPORTED / plan), *options, "--json"])
    out, err = capsys.readouterr()
    if status == 2:
        return {"status": status, "error": err}
    answer: dict[str, Any] = json.loads(out)
    found = {each["name"]: each for each in answer["findings"]}
    assert status == any(each["is_bad"] for each in answer["findings"])
    return answer | {"status": status, "found": found}


@pytest.mark.parametrize(
    "text",
    [
        EXECUTED,
        f"{FORMER}Successfully started reassignment of partitions \n{STARTED}",
        f"{FORMER}2015-03-01 10:00:00 INFO Successfully started partition reassignments for {STARTED}",
        f"{FORMER}[2015-03-01 10:00:00,000] INFO Successfully started reassignment of partitions {STARTED}",
        f"{FORMER}Warning: You must run --verify periodically.\nSuccessfully started reassignment {STARTED}",
    ],
)
def test_the_plan_that_execute_started_is_read_and_not_the_way_back(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "execute.txt").write_text(text)
    found = impact(capsys, "e-before.txt", tmp_path / "execute.txt", "--add", "8")
    assert (found["status"], found["moved_replica_count"], found["found"]) == (0, 2, {})
    (told,) = found["plans"]
    assert (told["stale_count"], told["unchanged_count"]) == (0, 0)


@pytest.mark.parametrize("ending", ["", "Successfully started partition reassignments for tp7-0,tp7-1\n"])
def test_an_output_of_execute_without_its_plan_is_said_to_be_the_way_back(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "execute.txt").write_text(FORMER + ending)
    found = impact(capsys, "e-before.txt", tmp_path / "execute.txt", "--add", "8")
    assert found["moved_replica_count"] == 0
    assert "this is the impact of the rollback" in found["found"]["rollback"]["sentence"]


ZOOKEEPER = [("2.8", ()), ("2.3", ()), ("3.2", ()), ("3.9", ("--zookeeper",)), (None, ("--zookeeper",))]
KRAFT = [("3.6", ()), ("4.4", ()), (None, ())]


@pytest.mark.parametrize(
    ("release", "options", "mode"),
    [*((*each, "zookeeper") for each in ZOOKEEPER), *((*each, "kraft") for each in KRAFT)],
)
def test_zookeepers_controller_waits_for_every_target(
    release: str | None, options: tuple[str, ...], mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = () if release is None else ("--kafka", release)
    found = impact(capsys, "f-zookeeper.txt", "f-plan.json", "--add", "7", *named, *options)
    assert (found["status"], found["controller"]) == (1, mode)
    assert found["batches"][0]["blocked_count"] == (mode == "zookeeper")
    if mode == "zookeeper":
        said = found["found"]["blocked"]["sentence"]
        assert "ZooKeeper's controller waits for: 1 partition, audit-0 (broker 5)" in said
        assert said.endswith("if it is gone for good: plan --goal drain --remove 5.")


def test_zookeepers_controller_waits_for_a_new_order_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"version":1,"partitions":[{"topic":"audit","partition":0,"replicas":[6,5,4]}]}')
    assert "blocked" in impact(capsys, "f-zookeeper.txt", path, "--kafka", "2.8")["found"]
    assert "blocked" not in impact(capsys, "f-zookeeper.txt", path, "--kafka", "3.9")["found"]


def test_zookeeper_is_refused_for_a_release_without_it_and_assumed_modes_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = impact(capsys, "f-zookeeper.txt", "f-plan.json", "--add", "7", "--zookeeper", "--kafka", "4.0")
    assert found["error"] == "brokerside: release 4.0 runs without ZooKeeper; the last one with it is 3.9\n"
    arguments = ["impact", str(REPORTED / "f-zookeeper.txt"), str(REPORTED / "f-plan.json"), "--add", "7"]
    for release, said in (("2.7", None), ("2.8", "ZooKeeper's controller."), ("3.9", "KRaft's controller (")):
        run(brokerside, "brokerside", [*arguments, "--kafka", release])
        shown = capsys.readouterr().out
        line = f"Kafka {release} runs with ZooKeeper or KRaft; this is the answer of"
        assert (f"{line} {said}" if said else line) in shown or (said is None and line not in shown)


@pytest.mark.parametrize(
    ("dump", "down"),
    [
        ("60-dead3.txt", 3),
        ("d-offline.txt", 5),
    ],
)
def test_a_new_replica_on_a_dead_broker_never_joins(
    dump: str, down: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [dict(p.split(": ", 1) for p in line.strip().split("\t") if ": " in p) for line in _lines(dump)]
    row = next(row for row in rows if "Partition" in row and str(down) not in row["Replicas"].split(","))
    replicas = [int(each) for each in row["Replicas"].split(",")]
    path = tmp_path / "plan.json"
    entry = {"topic": row["Topic"], "partition": int(row["Partition"]), "replicas": [*replicas[:-1], down]}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    found = impact(capsys, dump, path)
    assert found["status"] == 1
    name = f"{row['Topic']}-{row['Partition']}"
    said = found["found"]["never-joins"]["sentence"]
    assert f"never joins the ISR: 1 partition, {name} (broker {down}); bring broker {down} back first" in said
    refused = found["found"]["broker-not-live"]["sentence"]
    assert f'"Unknown broker id {down}"' in refused
    assert refused.endswith(f"if it is gone for good: plan --goal drain --remove {down}.")
    assert found["batches"][0]["blocked_count"] == 1


def _lines(dump: str) -> list[str]:
    return (REPORTED / dump).read_text().splitlines()


SIZES = ("--sizes", str(REPORTED / "42-logdirs.json"))
BIG = 200_000_000_000


def test_moves_between_log_directories_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = impact(capsys, "42-jbod.txt", "42-move.json", *SIZES, "--out", str(tmp_path))
    assert (found["status"], found["found"], found["moved_bytes"]) == (0, {}, 0)
    assert (found["copied_inside_replica_count"], found["copied_inside_bytes"]) == (2, 2 * BIG)
    columns = ("broker_id", "log_dir", "bytes_in", "bytes_out", "size_bytes_before")
    assert [[row[name] for name in columns] for row in found["directories"]] == [
        [1, "/data1", 0, BIG, 4 * BIG],
        [1, "/data2", BIG, 0, 4_000_000],
        [2, "/data1", 0, BIG, 4 * BIG],
        [2, "/data2", BIG, 0, 4_000_000],
    ]
    assert [row["size_bytes_peak"] - row["size_bytes_before"] for row in found["brokers"]] == [BIG, BIG]
    assert [row["size_bytes_after"] - row["size_bytes_before"] for row in found["brokers"]] == [0, 0]
    assert pq.read_table(tmp_path / "directories.parquet").to_pylist() == found["directories"]
    status = run(brokerside, "brokerside", ["impact", *(str(REPORTED / n) for n in JBOD), *SIZES])
    shown = capsys.readouterr().out
    assert status == 0
    assert "Between log directories of a broker: 2 replicas, 372.5 GiB copied inside brokers" in shown


JBOD = ("42-jbod.txt", "42-move.json")


def test_moves_between_directories_that_are_not_known_are_said_not_to_be_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = impact(capsys, *JBOD)["found"]["log-dirs-not-counted"]["sentence"]
    assert "not counted, as it is not known which directory holds a replica: 2 replicas" in said


@pytest.mark.parametrize(
    ("sizes", "plan", "name", "said"),
    [
        (
            "42-logdirs.json",
            "42-move-bad.json",
            "log-dir-unknown",
            "/nonexistent of broker 2",
        ),
        ("42-logdirs-dead.json", "42-move.json", "log-dir-offline", "/data2 of broker 2"),
    ],
)
def test_a_directory_that_a_broker_cannot_use_is_named(
    sizes: str, plan: str, name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = impact(capsys, "42-jbod.txt", plan, "--sizes", str(REPORTED / sizes))
    assert found["status"] == 1
    assert found["found"][name]["sentence"].endswith(f"{said}; broker 2 has /data1, /data2.")
    assert found["copied_inside_bytes"] == BIG, "the copy that is refused is not counted"


def test_a_later_batch_moves_on_from_the_directory_of_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for number, (replicas, dirs) in enumerate((([1, 2], ["/data2", "any"]), ([1, 2], ["/data2", "/data1"]))):
        entry = {"topic": "big", "partition": 0, "replicas": replicas, "log_dirs": dirs}
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps({"version": 1, "partitions": [entry]}))
    found = impact(capsys, "42-jbod.txt", paths[0], str(paths[1]), *SIZES)
    assert found["copied_inside_replica_count"] == 1
    found = impact(capsys, "42-jbod.txt", paths[0], str(paths[0]), str(REPORTED / "42-move.json"), *SIZES)
    assert found["copied_inside_replica_count"] == 2, "big-0 is there already, big-1 is not"
    empty = impact(capsys, "42-jbod.txt", paths[1], *SIZES)
    assert empty["directories"][0]["broker_id"] == 1


@pytest.mark.parametrize(
    ("dump", "goal", "options"),
    [
        ("42-jbod.txt", ("--add", "3"), (*SIZES, "--add", "3")),
        ("60-dead3.txt", ("--goal", "drain", "--remove", "2"), ()),
        ("b-factor-over-dead.txt", ("--goal", "factor", "--factor", "2"), ()),
    ],
)
def test_impact_says_of_a_plan_what_the_plan_says(
    dump: str, goal: tuple[str, ...], options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*goal, *(SIZES if SIZES[0] in options else ())]
    assert run(brokerside, "brokerside", ["plan", str(REPORTED / dump), *given, "--out", str(tmp_path), "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    found = impact(capsys, dump, tmp_path / "plan.json", *options)
    assert planned["changed_partition_count"] > 0
    assert (found["moved_replica_count"], found["moved_bytes"]) == (planned["moved"], planned["moved_bytes"])
    assert found["leader_changes"] == planned["leader_changes"]


def test_known_sizes_are_counted_beside_unknown_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = json.loads((REPORTED / "42-logdirs.json").read_text().splitlines()[-1])
    for broker in sizes["brokers"]:
        for one in broker["logDirs"]:
            one["partitions"] = [each for each in one["partitions"] if each["partition"] != "big-0"]
    (tmp_path / "sizes.json").write_text(json.dumps(sizes))
    entries = [{"topic": "big", "partition": number, "replicas": [1, 3]} for number in (0, 2)]
    (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": entries}))
    options = ("--sizes", str(tmp_path / "sizes.json"), "--add", "3")
    found = impact(capsys, "42-jbod.txt", tmp_path / "plan.json", *options)
    figures = ("moved_bytes", "moved_bytes_known", "moved_replica_count_of_unknown_size")
    assert [found[name] for name in figures] == [None, BIG, 1]
    run(brokerside, "brokerside", ["impact", str(REPORTED / "42-jbod.txt"), str(tmp_path / "plan.json"), *options])
    assert "Sizes are unknown of 1 new replica; the others copy 186.3 GiB." in capsys.readouterr().out


def test_a_znode_is_of_a_cluster_with_zookeeper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"version":1,"partitions":[{"topic":"11-zk-topic","partition":0,"replicas":[2,1,3]}]}')
    found = impact(capsys, "11-zk-topic.json", path, "--partial")
    assert (found["controller"], found["release"]) == ("zookeeper", "3.9")
    refused = impact(capsys, "11-zk-topic.json", path, "--partial", "--kafka", "4.0")
    assert "release 4.0 runs without ZooKeeper" in refused["error"]
