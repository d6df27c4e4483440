"""Plans carried out on a real cluster: racks are mended, then a broker is drained, by an operator's files and tools.

Six nodes, two a rack. A plan is made from what kafka-topics printed, cut into batches, and each batch is run as its
commands say: kafka-reassign-partitions --execute with a throttle, --verify until all of it is complete, then
kafka-leader-election. Between the calls the cluster is looked at by kafka-topics.

Example: carry_out(folder, NEWEST)[0].plan
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

import attrs
import numpy as np

from broker.cluster import BrokerView, ClusterView
from broker.ids import BrokerId
from broker.releases import Release
from placement.formats.plan_files import election_json, needs_election, reassignment_json
from placement.formats.read import read_dump
from placement.planning.completion import completion
from placement.planning.goal import Goal
from placement.planning.impact import under_min_isr
from placement.planning.peak import in_order
from placement.planning.plan import make_plan
from placement.planning.reassignment import Reassignment
from placement.planning.schedule import Limits, schedule
from tests.kafka.cluster import Cluster

TOPICS: Final = {
    "orders": [[1, 4, 2], [2, 5, 3], [3, 6, 1], [4, 2, 3], [5, 3, 1], [6, 1, 2], [1, 4, 5], [2, 5, 6]],
    "payments": [[6, 3, 1], [5, 4, 3], [6, 5, 4], [3, 6, 2]],
}
MIN_ISR: Final = 2
RECORDS: Final = 400
RECORD_BYTES: Final = 2_000
THROTTLE: Final = 2_000_000
CONCURRENCY: Final = 2
SECONDS_MAX: Final = 120
GOALS: Final = (Goal(kind="racks"), Goal(kind="drain", remove=(BrokerId(6),)))
REASSIGN: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT: Final = "org.apache.kafka.tools.LeaderElectionCommand"
_STATUS: Final = re.compile(
    r"(?:Reassignment of partition (\S+) is (completed|still in progress)\.|(no active reassignment) of partition)"
)
"""The last is the answer of a broker that lags the controller: the move has ended, the old replicas are shown."""


@attrs.define
class Done:
    """One plan as it was carried out: the cluster before and after, its batches, what was printed, and each look."""

    before: ClusterView
    plan: Reassignment
    batches: tuple[Reassignment, ...]
    executed: list[str] = attrs.field(factory=list)
    verified: list[str] = attrs.field(factory=list)
    looks: list[ClusterView] = attrs.field(factory=list)

    @property
    def after(self) -> ClusterView:
        """Return the last look."""
        return self.looks[-1]

    def under_min_isr_looks(self) -> int:
        """Return at how many looks a partition was under min-ISR."""
        return sum(
            int(np.count_nonzero(found)) > 0 for look in self.looks if (found := under_min_isr(look)) is not None
        )


def carry_out(folder: Path, release: Release) -> list[Done]:
    """Run the plans below `folder`."""
    done: list[Done] = []
    with Cluster.start(folder, release, node_count=6) as cluster:
        _fill(cluster)
        for number, goal in enumerate(GOALS):
            before = look(cluster)
            plan = make_plan(before, goal).reassignment
            done.append(_run(cluster, folder / f"plan-{number}", before, plan))
    return done


def look(cluster: Cluster) -> ClusterView:
    """Return the cluster as kafka-topics prints it, of our own topics, with the racks of the nodes."""
    text = cluster.call("describe")["text"]
    (view,) = read_dump([text.encode()], source="describe").clusters
    assert {topic.name for topic in view.topics} == set(TOPICS)
    racks = [BrokerView(id=BrokerId(node.id), rack=node.rack) for node in cluster.nodes.values()]
    return attrs.evolve(view, brokers=tuple(sorted(racks, key=lambda each: each.id)))


def _fill(cluster: Cluster) -> None:
    call = cluster.call
    for topic, replicas in TOPICS.items():
        call("create", topic=topic, replicas=replicas, settings={"min.insync.replicas": str(MIN_ISR)})
    for topic, replicas in TOPICS.items():
        records = [[number % len(replicas), f"key-{number}", "v" * RECORD_BYTES] for number in range(RECORDS)]
        call("produce", topic=topic, producer="none", codec="none", records=records)
    cluster.wait(lambda: not under_replicated(look(cluster)), "all replicas to be in sync")


def under_replicated(view: ClusterView) -> int:
    """Return how many partitions have a replica that is out of sync."""
    table = view.partitions
    assert table.isr is not None
    replicas, isr = np.count_nonzero(table.replicas >= 0, axis=1), np.count_nonzero(table.isr >= 0, axis=1)
    return int(np.count_nonzero(replicas != isr))


def _run(cluster: Cluster, folder: Path, before: ClusterView, plan: Reassignment) -> Done:
    folder.mkdir()
    batches = schedule(plan, Limits(concurrency=CONCURRENCY)).parts()
    done = Done(before, plan, batches, looks=[before])
    for number, part in enumerate(in_order(batches), start=1):
        path = folder / f"batch-{number:02}.json"
        path.write_text(reassignment_json(part))
        arguments = ["--reassignment-json-file", str(path)]
        done.executed.append(_tool(cluster, REASSIGN, *arguments, "--execute", "--throttle", str(THROTTLE)))
        done.verified.append(_verified(cluster, done, arguments))
        places = needs_election(completion(part))
        if places.size:
            election = folder / f"preferred-election-{number:02}.json"
            election.write_text(election_json(part, places))
            _tool(cluster, ELECT, "--election-type", "preferred", "--path-to-json-file", str(election))
        done.looks.append(look(cluster))
    return done


def _verified(cluster: Cluster, done: Done, arguments: list[str]) -> str:
    """Verify until every partition of a batch is complete, looking at the cluster meanwhile; return the last answer."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        done.looks.append(look(cluster))
        text = _tool(cluster, REASSIGN, *arguments, "--verify")
        found = _STATUS.findall(text)
        assert found, text
        if all(status == "completed" for _, status, _ in found):
            return text
        assert time.monotonic() < deadline, text
        time.sleep(0.2)


def _tool(cluster: Cluster, tool: str, *arguments: str) -> str:
    return str(cluster.call("tool", tool=tool, arguments=list(arguments))["text"])
