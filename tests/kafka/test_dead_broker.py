"""A broker dies: kafka-reassign-partitions refuses a file that names it, as we say, and takes the plan that drains it.

How: five released nodes, of which the fifth is killed. The file is ours; the drain is planned from what kafka-topics
printed, executed and verified.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from broker.cluster import ClusterView
from broker.ids import BrokerId
from broker.releases import NEWEST
from placement.formats.plan_files import reassignment_json
from placement.formats.read import read_dump
from placement.planning.findings import findings
from placement.planning.goal import Goal
from placement.planning.impact import impact
from placement.planning.plan import make_plan
from placement.planning.reassignment import Reassignment
from tests.kafka.cluster import Cluster
from tests.kafka.jvm import KafkaThrewError, KafkaUnavailableError
from tests.placement.planning.cases import lists

pytestmark = pytest.mark.kafka

DEAD: Final = BrokerId(5)
ROWS: Final = [[1, 2, 5], [5, 3, 4], [2, 3, 4], [4, 5, 1], [1, 2, 3]]
REASSIGN: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def look(cluster: Cluster) -> ClusterView:
    (view,) = read_dump([cluster.call("describe")["text"].encode()], source="describe").clusters
    return view


def reassign(cluster: Cluster, path: Path, plan: Reassignment, action: str) -> str:
    """Return what the tool prints for a plan, also where it ends with an error."""
    path.write_text(reassignment_json(plan))
    arguments = ["--reassignment-json-file", str(path), action]
    try:
        return str(cluster.call("tool", tool=REASSIGN, arguments=arguments)["text"])
    except KafkaThrewError as refusal:
        return str(refusal)


@pytest.fixture(scope="module")
def bereft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a cluster whose fifth node is dead, and seen to be so."""
    try:
        cluster = Cluster.start(tmp_path_factory.mktemp("dead"), NEWEST, node_count=5)
    except KafkaUnavailableError as missing:
        pytest.skip(f"released brokers cannot be run here: {missing}")
    with cluster:
        cluster.call("create", topic="orders", replicas=ROWS, settings={"min.insync.replicas": "2"})
        cluster.wait(lambda: lists(look(cluster).partitions.replicas) == ROWS, "the topic")
        cluster.kill(DEAD)
        cluster.wait(lambda: DEAD in look(cluster).down, "the dead broker to leave every ISR")
        yield cluster


def test_a_file_that_names_it_is_refused_as_we_say(bereft: Cluster, tmp_path: Path) -> None:
    named = Reassignment(view=look(bereft), rows=[4], replicas=[[1, 2, DEAD]])
    printed = reassign(bereft, tmp_path / "named.json", named, "--execute")
    assert f"Unknown broker id {DEAD}" in printed
    said = [one.sentence for one in findings(impact([named])) if one.name == "broker-not-live"]
    assert len(said) == 1
    assert f"Unknown broker id {DEAD}" in said[0]
    assert lists(look(bereft).partitions.replicas) == ROWS


def test_its_drain_is_taken_and_leaves_all_others_where_they_are(bereft: Cluster, tmp_path: Path) -> None:
    plan = make_plan(look(bereft), Goal(kind="drain", remove=(DEAD,))).reassignment
    assert plan.rows.tolist() == [row for row, held in enumerate(ROWS) if DEAD in held]
    path = tmp_path / "drain.json"
    assert "Successfully started partition reassignment" in reassign(bereft, path, plan, "--execute")
    deadline = time.monotonic() + 120
    while reassign(bereft, path, plan, "--verify").count("is completed.") < plan.count:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    after = lists(look(bereft).partitions.replicas)
    assert after == lists(np.asarray(plan.table().replicas))
    for held, now in zip(ROWS, after, strict=True):
        assert set(held) - {DEAD} <= set(now)
        assert DEAD not in now
