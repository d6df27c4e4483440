"""Live clusters: a snapshot is read by every command, a dead broker is said, and what does not answer is one sentence.

The cluster is simulated, and served on sockets to the released client library.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from broker.cli import run
from broker.cluster import ClusterView
from broker.liveness import Liveness
from placement.formats.read import read_dump
from replication.testing import Kafka, kafka_cluster
from spark_analysis.cli.commands import brokerside
from spark_analysis.live.cluster import LiveCluster, take_snapshot
from spark_analysis.report.commands import Commands
from spark_analysis.sources.dumps import read_input

SESSION_SECONDS = 12.0


def command(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = run(brokerside, "brokerside", [str(word) for word in words])
    return status, *capsys.readouterr()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + SESSION_SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with kafka_cluster(racks=("a", "b", "c"), topics={"orders": 3}, seed=1, min_insync_replicas=2) as running:
        yield running


def test_a_cluster_that_does_not_answer_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soon = tmp_path / "soon.properties"
    soon.write_text("request.timeout.ms=300\n")
    options = ("--bootstrap-server", "127.0.0.1:1", "--command-config", soon)
    status, out, err = command(capsys, "snapshot", *options, "--out", tmp_path / "s.json")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("brokerside: 127.0.0.1:1: no broker answered within 0.3 s: ")
    assert list(tmp_path.iterdir()) == [soon]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("roll", "x.txt", "--bootstrap-server", "h:1"),
            "DUMP and --bootstrap-server are two inputs",
        ),
        (("roll",), "Missing argument 'DUMP'."),
        (("report",), "Missing argument 'DUMP...'."),
        (("compare", "x.txt"), "Missing argument 'AFTER'."),
        (("impact", "x.txt"), "Missing argument 'PLAN...'."),
        (("groups", "assign"), "Missing argument 'SPEC'."),
        (("snapshot", "--out", "x"), "Missing argument '--bootstrap-server'."),
        (("roll", "x.txt", "--command-config", "x"), "--command-config has no effect without --bootstrap-server"),
    ],
)
def test_a_command_takes_a_dump_or_a_live_cluster(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = command(capsys, *words)
    assert status == 2
    assert sentence in err


def test_commands_that_a_report_names_ask_the_cluster_again() -> None:
    commands = Commands("--bootstrap-server=h:1", ("--command-config", "my file"), "h")
    assert commands.outage() == "brokerside outage --bootstrap-server=h:1 --command-config 'my file'"


@pytest.mark.deep
def test_every_command_takes_a_live_cluster(kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live, saved, plan = ("--bootstrap-server", kafka.bootstrap_servers), tmp_path / "s.json", tmp_path / "plan.json"
    assert command(capsys, "snapshot", *live, "--out", saved)[0] == 0
    plan.write_text('{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[2,0,1]}]}')
    for words in (("roll",), ("outage",), ("plan",), ("impact", plan)):
        from_file = command(capsys, words[0], saved, *words[1:], "--json")
        found = command(capsys, *words, *live, "--json")
        assert found[0] == from_file[0], found
        named = json.loads(found[1])
        assert {**named, "known": None, "cluster": None} == {**json.loads(from_file[1]), "known": None, "cluster": None}
    assert "Nothing changed." in command(capsys, "compare", saved, *live)[1]
    status, out, _ = command(capsys, "report", *live, "--out", tmp_path / "out", "--quiet")
    assert (status, "Dumps of 1 cluster, from 1 input." in out) == (0, True)
    assert f"--bootstrap-server={kafka.bootstrap_servers}" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.deep
def test_a_snapshot_has_settings_groups_and_lags(
    kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(30):
        producer.produce("orders", b"x", partition=number % 3)
    assert producer.flush(10) == 0
    options = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(options)
    consumer.subscribe(["orders"])
    for _ in range(12):
        message: Any = consumer.poll(10)
        assert message is not None
    consumer.commit(asynchronous=False)
    path = tmp_path / "s.json"
    path.write_bytes(take_snapshot(LiveCluster(kafka.bootstrap_servers)).data)
    (group,) = json.loads(path.read_bytes())["groups"]
    assert sum(row["offset"] for row in group["offsets"]) == 12
    assert all(row["end_offset"] == 10 == row["lag"] + row["offset"] for row in group["offsets"])
    (view,) = read_input(str(path)).clusters
    assert view.partitions.size_bytes is not None
    assert view.partitions.size_bytes.max() >= 10
    assert {topic.name: topic.min_insync_replicas for topic in view.topics}["orders"] == 2
    assert view.racks == ("a", "b", "c")
    for words in (("--bootstrap-server", kafka.bootstrap_servers), (path,)):
        status, out, _ = command(capsys, "groups", "assign", *words)
        assert (status, "3 partitions of 1 topic" in out, "partition counts" in out) == (0, True, False)
    consumer.close()


@pytest.mark.deep
def test_a_broker_that_is_killed_is_down_and_the_rest_is_read() -> None:
    with kafka_cluster(topics={"orders": 3}, seed=1) as kafka:
        kafka.kill(1)
        until(lambda: all(1 not in kafka.isr("orders", number) for number in range(3)))
        found = take_snapshot(LiveCluster(kafka.bootstrap_servers))
        document = json.loads(found.data)
        assert [broker["id"] for broker in document["brokers"]] == [0, 2]
        (view,) = read_snapshot_of(found.data)
        assert view.down == {1: Liveness.FENCED}
        assert view.partitions.count == 7


@pytest.mark.deep
def test_a_broker_that_is_still_listed_and_does_not_answer_is_a_note(tmp_path: Path) -> None:
    soon = tmp_path / "soon.properties"
    soon.write_text("request.timeout.ms=1500\n")
    with kafka_cluster(topics={"orders": 3}, seed=1) as kafka:
        kafka.pause(1)
        found = take_snapshot(LiveCluster(kafka.bootstrap_servers.split(",")[0], str(soon)))
        assert any(note.startswith("DescribeConfigs (brokers) for 1 of 3, such as 1,") for note in found.notes)
        assert read_snapshot_of(found.data)[0].partitions.count == 7


def read_snapshot_of(data: bytes) -> tuple[ClusterView, ...]:
    return read_dump([data], source="live").clusters
