"""A released cluster is read live over TLS and SASL, by who may and who may not, and with a dead broker."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker.cli import run
from broker.cluster import ClusterView
from broker.liveness import Liveness
from broker.releases import NEWEST
from placement.formats.read import read_dump
from spark_analysis.cli.commands import brokerside
from tests.kafka.cluster import Cluster
from tests.kafka.jvm import KafkaUnavailableError
from tests.kafka.security import Security, add_scram_users

pytestmark = [pytest.mark.kafka, pytest.mark.deep]


@attrs.frozen
class Running:
    """Hold a cluster, its bootstrap servers by listener, and the files of its clients."""

    cluster: Cluster
    servers: dict[str, str]
    files: Security


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("live")
    files = Security(folder / "clients")
    files.make()
    try:
        cluster = Cluster.start(folder, NEWEST, node_count=3, more=files.of_node)
    except KafkaUnavailableError as missing:
        pytest.skip(f"released brokers cannot be run here: {missing}")
    with cluster:
        text = "\n".join(path.read_text() for path in sorted(folder.rglob("server.properties")))
        servers = {
            name: ",".join(re.findall(rf"[=,]{name}://([^,\n]+)", text)) for name in ("PLAINTEXT", "SASL", "TLS")
        }
        admin = AdminClient({"bootstrap.servers": servers["PLAINTEXT"]})
        topics = [NewTopic(f"min{count}", 2, 3, config={"min.insync.replicas": str(count)}) for count in (2, 3)]
        for created in admin.create_topics(topics).values():
            created.result(30)
        add_scram_users(admin)
        producer = Producer({"bootstrap.servers": servers["PLAINTEXT"]})
        for _ in range(50):
            producer.produce("min2", bytes(1_000), partition=0)
        assert producer.flush(30) == 0
        yield Running(cluster, servers, files)


def snapshot(running: Running, listener: str, properties: Path, out: Path) -> int:
    """Run `brokerside snapshot`, and return its status."""
    options = ("--bootstrap-server", running.servers[listener], "--command-config", str(properties))
    return run(brokerside, "brokerside", ["snapshot", *options, "--out", str(out)])


def view_of(path: Path) -> ClusterView:
    (view,) = read_dump([path.read_bytes()], source=str(path)).clusters
    return view


@pytest.mark.parametrize("way", ["TLS", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_everything_is_read_over_tls_and_sasl(
    running: Running, way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listener, files = ("TLS" if way == "TLS" else "SASL"), running.files
    properties = files.tls() if way == "TLS" else files.sasl(way, "admin")
    status = snapshot(running, listener, properties, tmp_path / "s.json")
    assert (status, capsys.readouterr().err) == (0, "")
    view = view_of(tmp_path / "s.json")
    assert [broker.rack for broker in view.brokers] == ["a", "b", "c"]
    assert {topic.name: topic.min_insync_replicas for topic in view.topics} == {"min2": 2, "min3": 3}
    sizes = view.partitions.size_bytes
    assert sizes is not None
    assert sizes.max() > 50_000


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_one_sentence(
    running: Running, mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    properties, began_s = running.files.sasl(mechanism, "admin", "wr0ng"), time.monotonic()
    status, said = snapshot(running, "SASL", properties, tmp_path / "s.json"), capsys.readouterr().err
    assert (status, said.count("\n")) == (2, 1), said
    assert f"{running.servers['SASL']}: the cluster refuses the client: " in said
    assert "wr0ng" not in said
    assert time.monotonic() - began_s < 15, "the time-out is 30 s, and the library knows after a second"


def test_a_user_who_may_read_nothing_is_refused(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = snapshot(running, "SASL", running.files.sasl("PLAIN", "bob"), tmp_path / "s.json")
    said = capsys.readouterr().err
    servers = running.servers["SASL"]
    assert (status, said) == (
        2,
        f"brokerside: {servers}: the cluster shows this client no topic: authorization failed\n",
    )


def test_a_dead_broker_is_down_and_its_replicas_are_eligible_leaders(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running.cluster.kill(3)
    admin = AdminClient({"bootstrap.servers": running.servers["PLAINTEXT"]})
    end = time.monotonic() + 60
    while len(admin.list_topics(timeout=10).brokers) > 2:
        assert time.monotonic() < end
        time.sleep(1)
    properties = running.files.client_file("plain")
    assert snapshot(running, "PLAINTEXT", properties, tmp_path / "s.json") == 0, capsys.readouterr().err
    view = view_of(tmp_path / "s.json")
    assert view.down == {3: Liveness.FENCED}
    document = json.loads((tmp_path / "s.json").read_text())
    elr = {topic["topic"]: {tuple(each["elr"]) for each in topic["partitions"]} for topic in document["topics"]}
    assert elr == {"min2": {()}, "min3": {(3,)}}
    assert {each["broker"] for each in document["log_dirs"]["brokers"]} == {1, 2}
