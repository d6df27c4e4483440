"""The simulated cluster answers as released Kafka does: 2,000 drawn requests, and Kafka's own tools against it.

How: three released brokers and a simulated cluster of their shape get the same requests (`tests.kafka.protocol_run`).
The tools are those of Kafka's distribution, run as operators run them, against `kafka_cluster`.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs
import pytest

from broker.ids import BrokerId
from broker.releases import NEWEST
from broker.units import DurationMs
from placement.formats.plan_files import reassignment_json
from placement.planning.goal import Goal
from placement.planning.plan import make_plan
from replication.simulation.options import Options
from replication.testing import ClusterSpec, Kafka, kafka_cluster
from replication.testing.served_cluster import ServedCluster
from tests.kafka import cluster as released
from tests.kafka.jvm import KafkaUnavailableError, java_command
from tests.kafka.protocol_draws import VERSIONS, Drawer
from tests.kafka.protocol_ends import Released, Simulated
from tests.kafka.protocol_run import Run
from tests.placement.planning.cases import lists
from tests.replication.testing.test_like import describe, view_of

pytestmark = [pytest.mark.kafka, pytest.mark.deep]
SEEDS: Final = (5, 21)
COUNT: Final = 2_000
SAME_SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "3",
    "group.consumer.migration.policy": "disabled",  # The simulated coordinator keeps the protocols apart.
}
TOOLS: Final = "org.apache.kafka.tools."


@attrs.frozen(kw_only=True)
class SameSpec(ClusterSpec):
    """Describe the shape of the released cluster: its racks and settings, and no balancing of leaders."""

    racks: tuple[str, ...] = released.RACKS
    auto_create: bool = False
    min_insync_replicas: int = 1

    def options(self) -> Options:
        """Return the options."""
        options = super().options()
        role_settings = attrs.evolve(options.role_settings, balance_ms=DurationMs(1 << 40))
        return attrs.evolve(options, role_settings=role_settings)

    def static_configs(self) -> dict[str, str]:
        """Return the settings that the released brokers are given."""
        given = {name: released.SETTINGS[name] for name in ("log.retention.ms", "log.index.size.max.bytes")}
        return {**super().static_configs(), **given}


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_requests_are_answered_as_released_kafka_answers_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    for name, value in SAME_SETTINGS.items():
        monkeypatch.setitem(released.SETTINGS, name, value)
    try:
        started = released.Cluster.start(tmp_path, NEWEST, node_count=3)
    except KafkaUnavailableError as missing:
        pytest.skip(f"released brokers cannot be run here: {missing}")
    with started as kafka:
        theirs = Released([node.port for node in kafka.nodes.values()])
        now_ms = round(time.time() * 1_000)
        served = ServedCluster(SameSpec(wall_clock_ms=now_ms))
        served.begin()
        run = Run(Simulated(served), theirs)
        run.play(Drawer(seed, now_ms), COUNT)
        theirs.close()
    assert not run.differences, "\n".join(map(str, run.differences[:20]))
    assert not served.simulation.findings
    assert len(run.errors) > 60
    versions = {(name, version) for name, (_, low, high) in VERSIONS.items() for version in range(low, high + 1)}
    assert len(versions - run.counts.keys()) < len(versions) // 10


def tools_for(folder: Path, kafka: Kafka) -> Callable[..., str]:
    """Return a function that runs one of Kafka's tools against a cluster, and returns what it printed."""
    try:
        java = java_command(folder / "build", NEWEST)
    except KafkaUnavailableError as missing:
        pytest.skip(f"Kafka's tools cannot be run here: {missing}")

    def run(tool: str, *arguments: str, given: str = "") -> str:
        command = [java[0], *released.MEMORY, *java[1:], TOOLS + tool, "--bootstrap-server"]
        command += [kafka.bootstrap_servers, *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (tool, arguments, done.stdout, done.stderr)
        return done.stdout

    return run


def test_a_plan_for_a_real_cluster_is_rehearsed_on_one_like_it(tmp_path: Path) -> None:
    """The plan is made of the dump; Kafka's own tool carries its file out on the cluster that is like it."""
    view = view_of(describe())
    plan = make_plan(view, Goal(kind="drain", remove=(BrokerId(1004),))).reassignment
    table, file = view.partitions, tmp_path / "plan.json"
    file.write_text(reassignment_json(plan))
    with kafka_cluster(like=view) as kafka:
        run = tools_for(tmp_path, kafka)
        files = ("--reassignment-json-file", str(file))
        assert "Successfully started" in run("reassign.ReassignPartitionsCommand", *files, "--execute")
        verified = run("reassign.ReassignPartitionsCommand", *files, "--verify")
        assert verified.count("is completed") == plan.count == 3
        for row, replicas in zip(plan.rows.tolist(), lists(plan.replicas), strict=True):
            topic = view.topics[int(table.topic_index[row])].name
            assert kafka.replicas(topic, int(table.partition_ids[row])) == tuple(replicas)
        assert kafka.verdict().is_clean


def test_the_tools_of_kafka_administer_a_simulated_cluster(tmp_path: Path) -> None:
    with kafka_cluster(racks=("a", "b", "c"), topics={"orders": 2}, seed=1) as kafka:
        run = tools_for(tmp_path, kafka)
        made = ("--topic", "made")
        settings = ("--config", "min.insync.replicas=2")
        run("TopicCommand", "--create", *made, "--partitions", "2", "--replication-factor", "3", *settings)
        run("TopicCommand", "--alter", *made, "--partitions", "3")
        described = run("TopicCommand", "--describe", *made)
        assert "PartitionCount: 3\tReplicationFactor: 3\tConfigs: min.insync.replicas=2" in described
        assert described.count("Elr: \tLastKnownElr: ") == 3

        run("ConsoleProducer", "--topic", "orders", given="a\nb\nc\n")
        for group, how in (("old", "classic"), ("new", "consumer")):
            reading = ("--topic", "orders", "--from-beginning", "--max-messages", "3", "--timeout-ms", "60000")
            protocol = ("--command-property", f"group.protocol={how}")
            assert run("consumer.ConsoleConsumer", *reading, "--group", group, *protocol).split() == ["a", "b", "c"]
        assert run("consumer.group.ConsumerGroupCommand", "--list").split() == ["new", "old"]
        offsets = run("consumer.group.ConsumerGroupCommand", "--describe", "--all-groups")
        lines = [line.split() for line in offsets.splitlines()]
        ends = {(words[0], int(words[3])) for words in lines if len(words) > 4 and words[1] == "orders"}
        # A consumer that ends soon has not asked where the empty partition begins, and commits nothing for it.
        assert {("old", 3), ("new", 3)} <= ends <= {("old", 0), ("old", 3), ("new", 0), ("new", 3)}

        run("ConfigCommand", "--alter", "--topic", "orders", "--add-config", "retention.ms=60000")
        assert "retention.ms=60000" in run("ConfigCommand", "--describe", "--topic", "orders")

        _plan_is_carried_out(kafka, run, tmp_path)
        assert '"partition":"orders-0"' in run("LogDirsCommand", "--describe", "--topic-list", "orders")
        run("TopicCommand", "--delete", "--topic", "orders")
        assert "orders" not in run("TopicCommand", "--list")


def _plan_is_carried_out(kafka: Kafka, run: Callable[..., str], folder: Path) -> None:
    """Move a partition and elect its preferred leader, by files as `brokerside plan` writes them."""
    before = kafka.replicas("orders", 0)
    after = [before[2], before[0], before[1]]
    plan, election = folder / "plan.json", folder / "election.json"
    moved = {"topic": "orders", "partition": 0, "replicas": after}
    plan.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    election.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 0}]}))
    files = ("--reassignment-json-file", str(plan))
    started = run("reassign.ReassignPartitionsCommand", *files, "--execute", "--throttle", "1000000")
    assert "Successfully started partition reassignment for orders-0" in started
    assert "orders-0 is completed" in run("reassign.ReassignPartitionsCommand", *files, "--verify")
    run("LeaderElectionCommand", "--election-type", "preferred", "--path-to-json-file", str(election))
    assert kafka.replicas("orders", 0) == tuple(after)
    assert kafka.leader("orders", 0) == after[0]
