"""A cluster like that of a dump: its brokers, racks, topics, replicas, leaders and settings, without records."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from confluent_kafka.admin import AdminClient

from broker.cluster import ClusterView
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.liveness import Liveness
from placement.formats.read import read_dump
from replication.testing import Kafka, kafka_cluster
from replication.testing.like import spec_like
from replication.testing.served_cluster import ServedCluster

RACKS = {1001: "a", 1002: "b", 1003: "c", 1004: "a"}
PLACES = {
    ("orders", 0): (1002, (1001, 1002, 1003)),
    ("orders", 1): (1002, (1002, 1003, 1004)),
    ("orders", 2): (1003, (1003, 1004, 1001)),
    ("orders", 3): (1001, (1004, 1001, 1002)),
    ("audit", 0): (1003, (1003, 1001)),
    ("audit", 1): (1002, (1002, 1003)),
    ("__consumer_offsets", 0): (1001, (1001, 1002, 1003)),
    ("__consumer_offsets", 1): (1002, (1002, 1003, 1001)),
}
"""The leader and replicas of each partition; broker 1004 is dead."""
CONFIGS = {
    "orders": "min.insync.replicas=2,retention.ms=86400000",
    "audit": "cleanup.policy=compact,confluent.tier.enable=true",
    "__consumer_offsets": "cleanup.policy=compact,segment.bytes=104857600",
}


def describe(places: dict[tuple[str, int], tuple[int, tuple[int, ...]]] = PLACES) -> str:
    """Return what kafka-topics --describe prints."""
    lines = []
    for topic in dict.fromkeys(name for name, _ in places):
        rows = {number: row for (name, number), row in places.items() if name == topic}
        factor = max(len(replicas) for _, replicas in rows.values())
        head = f"Topic: {topic}\tTopicId: AAAAAAAAAAAAAAAAAAAAAQ\tPartitionCount: {len(rows)}"
        lines.append(f"{head}\tReplicationFactor: {factor}\tConfigs: {CONFIGS.get(topic, '')}")
        for number, (leader, replicas) in rows.items():
            listed, alive = (",".join(map(str, row)) for row in (replicas, [each for each in replicas if each != 1004]))
            where = f"\tTopic: {topic}\tPartition: {number}\tLeader: {leader}"
            lines.append(f"{where}\tReplicas: {listed}\tIsr: {alive}\tElr: \tLastKnownElr: ")
    return "\n".join(lines) + "\n"


def view_of(text: str) -> ClusterView:
    (view,) = read_dump([text.encode()], source="prod.txt", name="prod").clusters
    return view.with_racks([(BrokerId(broker), rack) for broker, rack in RACKS.items()])


def begun(**options: Any) -> ServedCluster:
    served = ServedCluster(spec_like(view_of(describe()), **options).spec)
    served.begin()
    return served


def test_brokers_topics_replicas_and_leaders_are_those_of_the_dump_and_the_dead_broker_is_fenced() -> None:
    served = begun()
    image = served.cluster.controller.image
    found = {}
    for topic in served.topics:
        for index, number in enumerate(topic.numbers):
            state = image.partitions[number]
            found[topic.name, index] = (state.leader, state.replicas)
            assert set(state.isr) == set(state.replicas) - {1004}
    assert found == PLACES
    assert {broker: status.fenced for broker, status in image.brokers.items()} == {
        1001: False,
        1002: False,
        1003: False,
        1004: True,
    }
    assert {broker: status.rack for broker, status in image.brokers.items()} == RACKS
    orders = served.topics.get("orders")
    assert orders is not None
    assert {image.settings_of(each, served.simulation.options.settings).min_isr for each in orders.numbers} == {2}


def test_min_insync_replicas_are_those_of_topics_without_a_setting_of_their_own() -> None:
    served = begun(min_insync_replicas=3)
    image, settings = served.cluster.controller.image, served.simulation.options.settings
    found = {each.name: image.settings_of(each.numbers[0], settings).min_isr for each in served.topics}
    assert found == {"orders": 2, "audit": 3, "__consumer_offsets": 3}
    with pytest.raises(UsageError, match="min_insync_replicas is 4; allowed are whole numbers from 0 to 3"):
        begun(min_insync_replicas=4)
    with pytest.raises(UsageError, match="factor is decided by the cluster that is served like; leave it out"):
        begun(factor=2)


def test_what_differs_from_the_real_cluster_is_said() -> None:
    assert spec_like(view_of(describe())).notes == (
        "broker 1004 (in no ISR): down here, too",
        "1 setting that Kafka 4.4 does not take left out: confluent.tier.enable=true of audit",
    )


def test_topics_are_chosen_by_patterns_and_others_are_served_beside() -> None:
    served = begun(only=("ord*",), topics={"new": 2})
    assert {topic.name: len(topic.numbers) for topic in served.topics} == {
        "__consumer_offsets": 4,
        "new": 2,
        "orders": 4,
    }


@pytest.mark.parametrize(
    ("text", "only", "words"),
    [
        (describe(), ("x*",), "no topic of prod is named 'x*'"),
        (
            describe({("wide", number): (1001, (1001, 1002)) for number in range(5_000)}),
            (),
            "prod has 5,000 partitions; at most 996 are served: choose topics, such as --only 'orders*,payments'",
        ),
        (
            describe({("far", 0): (100_000, (100_000,))}),
            (),
            "prod has 5 brokers, the largest id is 100000; served are 100 with ids up to 99,999",
        ),
        (describe({("gap", 1): (1001, (1001,))}), (), "topic 'gap' of prod lists partitions 1 only"),
        (describe({("dead", 0): (1001, tuple(RACKS))}), (), "no broker of prod is alive"),
    ],
)
def test_a_cluster_that_cannot_be_served_is_refused_in_one_sentence(
    text: str, only: tuple[str, ...], words: str
) -> None:
    view = view_of(text)
    if "dead" in text:
        view = view.with_stated(dict.fromkeys(map(BrokerId, RACKS), Liveness.STATED_DOWN))
    if "far" in text:
        view = view.with_empty(dict.fromkeys(map(BrokerId, RACKS)))
    with pytest.raises(UsageError) as refused:
        spec_like(view, only)
    assert str(refused.value) == words


async def written_and_read(kafka: Kafka) -> tuple[dict[Any, Any], list[bytes]]:
    """Return what a client is shown of the cluster, and what it reads of what it wrote."""
    servers = kafka.bootstrap_servers
    producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all")
    await producer.start()
    for number in range(8):
        await producer.send_and_wait("orders", b"%d" % number, partition=number % 4)
    await producer.stop()
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
    await consumer.start()
    read = [(await consumer.getone()).value for _ in range(8)]
    await consumer.stop()
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    topics = {each["topic"]: each["partitions"] for each in await admin.describe_topics()}
    shown = {
        (name, each["partition"]): (each["leader"], tuple(each["replicas"]))
        for name, partitions in topics.items()
        for each in partitions
    }
    (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "orders")])
    configs = {entry[0]: entry[1] for entry in answer.resources[0][4]}
    await admin.close()
    return {"places": shown, "configs": configs}, sorted(read)


def test_a_real_client_sees_the_cluster_of_the_dump_and_works_with_it() -> None:
    with kafka_cluster(like=view_of(describe())) as kafka:
        shown, read = asyncio.run(written_and_read(kafka))
        racks = {each.id: each.rack for each in described(kafka.bootstrap_servers)}
        kafka.restart(1004)
        with pytest.raises(UsageError, match="there is no broker 4; brokers are 1001, 1002, 1003, 1004"):
            kafka.kill(4)
        assert kafka.verdict().is_clean
    assert shown["places"] == PLACES
    assert (shown["configs"]["min.insync.replicas"], shown["configs"]["retention.ms"]) == ("2", "86400000")
    assert read == [b"%d" % number for number in range(8)]
    assert racks == {broker: rack for broker, rack in RACKS.items() if broker != 1004}


def described(servers: str) -> Any:
    """Return the brokers as librdkafka is shown them; one of the addresses answers nothing."""
    client = AdminClient({"bootstrap.servers": servers})
    return client.describe_cluster().result(10).nodes


def serve(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "spark_analysis", "serve", "--port", "0", *arguments]


def test_the_command_serves_a_dump_with_a_file_of_racks(tmp_path: Path) -> None:
    (tmp_path / "prod.txt").write_text(describe())
    (tmp_path / "racks.csv").write_text("".join(f"{broker},{rack}\n" for broker, rack in {**RACKS, 7: "z"}.items()))
    command = serve("--from", str(tmp_path / "prod.txt"), "--racks", str(tmp_path / "racks.csv"), "--json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        nodes = {each.id: each.rack for each in described(ready["bootstrap_servers"])}
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert ready["brokers"] == 4
    assert nodes == {1001: "a", 1002: "b", 1003: "c"}
    assert json.loads(out)["findings"] == []
    assert "note: racks: 1 of 5 brokers of the file are not in the dump (7)\n" in err
    assert "note: broker 1004 (in no ISR): down here, too" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--from", "{dump}", "--only", "x"), "no topic of prod is named 'x'"),
        (("--from", "{dump}", "--brokers", "4"), "--brokers has no effect with --from; leave out one of the two"),
        (("--from", "{dump}", "--at", "5"), "is no metadata log, of which alone moments can be asked"),
        (("--from", "{dump}x"), "cannot be read: no such file or directory"),
        (("--from", "{dump}", "--topic", "orders"), "topic 'orders' is in prod already; give it once"),
        (("--only", "orders"), "--only has no effect without --from; give both, or neither"),
        (("--from", "{dump}", "--fault", "kill 3 at 5s"), "KILL strikes broker 3; the cluster has brokers 1001, 1002"),
    ],
)
def test_the_command_refuses_bad_input_with_one_sentence_and_status_2(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "prod.txt").write_text(describe())
    given = [each.format(dump=tmp_path / "prod.txt") for each in arguments]
    done = subprocess.run(serve(*given), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    last = done.stderr.splitlines()[-1]
    assert words in last
    assert "Traceback" not in done.stderr


def test_the_checkers_hold_a_topic_against_its_own_min_insync_replicas() -> None:
    """Of two replicas one is dead: with min.insync.replicas=2 it stays eligible, which is no finding."""
    places: dict[tuple[str, int], tuple[int, tuple[int, ...]]] = {
        ("orders", 0): (1001, (1001, 1004)),
        ("other", 0): (1002, (1002, 1003)),
    }
    served = ServedCluster(spec_like(view_of(describe(places))).spec)
    served.begin()
    orders = served.topics.get("orders")
    assert orders is not None
    assert served.cluster.controller.image.partitions[orders.numbers[0]].elr == (1004,)
    assert served.simulation.findings == ()
    assert not served.finish().findings
