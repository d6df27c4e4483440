"""A released cluster of three brokers, one of them dead, is read live: racks, settings, and who is down."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from broker.liveness import Liveness
from broker.releases import NEWEST
from placement.formats.read import read_dump
from spark_analysis.live.cluster import LiveCluster, take_snapshot
from tests.kafka.cluster import Cluster
from tests.kafka.jvm import KafkaUnavailableError

pytestmark = [pytest.mark.kafka, pytest.mark.deep]


def test_a_released_cluster_with_a_dead_broker_is_read(tmp_path: Path) -> None:
    try:
        cluster = Cluster.start(tmp_path, NEWEST, node_count=3)
    except KafkaUnavailableError as missing:
        pytest.skip(f"released brokers cannot be run here: {missing}")
    with cluster:
        texts = [path.read_text() for path in sorted(tmp_path.rglob("server.properties"))]
        servers = ",".join(re.findall(r"^listeners=PLAINTEXT://([^,]+)", "\n".join(texts), re.MULTILINE))
        admin = AdminClient({"bootstrap.servers": servers})
        created = admin.create_topics([NewTopic("orders", 4, 3, config={"min.insync.replicas": "2"})])
        created["orders"].result(30)
        cluster.kill(3)
        end = time.monotonic() + 60
        while len(admin.list_topics(timeout=10).brokers) > 2:
            assert time.monotonic() < end
            time.sleep(1)
        found = take_snapshot(LiveCluster(servers))
        (view,) = read_dump([found.data], source="live").clusters
        assert (found.notes, view.down) == ((), {3: Liveness.FENCED})
        assert [broker.rack for broker in view.brokers] == ["a", "b", None]
        assert {topic.name: topic.min_insync_replicas for topic in view.topics} == {"orders": 2}
