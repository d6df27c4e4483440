"""Send drawn requests to a simulated cluster and to a released one, and list how the responses differ.

What it decides: which fields may differ (`ALLOWED`, each with its reason), and when both clusters have settled: after a
request that changes metadata every broker must show the topics, leaders and in-sync replicas expected.

Source: ours.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from tests.kafka.protocol_draws import Drawer, Step, World
from tests.kafka.protocol_ends import End, Ref, Released, Simulated, ask, symbolic

SETTLE_SECONDS_MAX: Final = 30
OFFSETS_TOPIC: Final = "__consumer_offsets"

ALLOWED: Final[Mapping[str, str]] = {
    "error_message": "texts for people name Java's classes",
    "port": "addresses of the machine",
    "ApiVersions.api_keys": "fewer requests and versions are served",
    "ApiVersions.finalized_features": "features are not served",
    "ApiVersions.finalized_features_epoch": "features are not served",
    "ApiVersions.supported_features": "features are not served",
    "ConsumerGroupDescribe.assignment_epoch": "no target is computed for a group whose last member has left",
    "DescribeCluster.cluster_id": "drawn when a cluster is formatted",
    "DescribeCluster.controller_id": "a broker names any broker as controller, as only the quorum's leader is one",
    "DescribeLogDirs.log_dir": "directories of the machine",
    "DescribeLogDirs.total_bytes": "disks of the machine",
    "DescribeLogDirs.usable_bytes": "disks of the machine",
    "FindCoordinator.node_id": "groups fall on brokers by the number of partitions of __consumer_offsets",
    "InitProducerId.producer_id": "ids are given out in blocks a broker",
    "Metadata.cluster_id": "drawn when a cluster is formatted",
    "Metadata.controller_id": "a broker names any broker as controller, as only the quorum's leader is one",
    "Produce.record_errors": "texts for people, and the places that they name",
}
"""The fields that differ for a reason, by name: of every API, or of the API named."""


@attrs.frozen
class Difference:
    """Hold one difference: the step, its request, and both values of a field."""

    number: int
    step: Step
    field: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        request = {
            name: value if not isinstance(value, bytes) else len(value) for name, value in self.step.values.items()
        }
        return (
            f"{self.number} {self.step.name} v{self.step.version} to {self.step.broker}: {self.field} is "
            f"{self.ours!r:.300}, in Kafka {self.theirs!r:.300}; {request!r:.700}"
        )


@attrs.define
class Run:
    """Send steps to both clusters."""

    ours: Simulated
    theirs: Released
    differences: list[Difference] = attrs.field(factory=list)
    counts: Counter[tuple[str, int]] = attrs.field(factory=Counter)
    errors: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    number: int = 0

    def play(self, drawer: Drawer, count: int) -> None:
        """Create the topics, and send so many drawn steps."""
        for broker in range(3):
            while ask(self.theirs, broker, 22, 2, {"transactional_id": None})["error_code"] != "none":
                time.sleep(0.2)  # A broker's first block of producer ids is on its way.
        for step in drawer.first():
            self.send(drawer, step)
        for _ in range(count):
            self.send(drawer, drawer.next())

    def send(self, drawer: Drawer, step: Step) -> None:
        """Send one step to both, compare, remember ids, and wait until both have settled."""
        self.number += 1
        self.counts[step.name, step.version] += 1
        if step.name == "Fetch":
            self.ours.sleep(600)  # Followers learn of the high watermark with their next fetch.
            time.sleep(0.6 if step.is_of_follower else 0)
        ends: tuple[End, End] = self.ours, self.theirs
        answers = [self._ask(end, step) for end in ends]
        for end, answer in zip(ends, answers, strict=True):
            remember(end, step, answer)
        shown = [_kept(step.name, symbolic(end, answer)) for end, answer in zip(ends, answers, strict=True)]
        self.errors.update((step.name, error) for error in _errors(shown[1]))
        for field, ours, theirs in differing(shown[0], shown[1]):
            self.differences.append(Difference(self.number, step, field, ours, theirs))
        heard(drawer, step, answers[1])
        if step.settles:
            settle(self.ours, drawer.world, lambda: self.ours.sleep(50))
            settle(self.theirs, drawer.world, lambda: time.sleep(0.05))

    def _ask(self, end: End, step: Step) -> Any:
        broker = step.broker if isinstance(step.broker, int) else coordinator(end, *step.broker)
        return ask(end, broker, step.api, step.version, step.values)


def coordinator(end: End, what: str, group: str) -> int:
    """Return the place of a group's coordinator, or of another broker."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while True:
        found = ask(end, 0, 10, 4, {"key_type": 0, "coordinator_keys": [group]})["coordinators"][0]
        if found["error_code"] == "none" and _coordinates(end, found["node_id"] - end.first_id, group):
            place: int = found["node_id"] - end.first_id
            return place if what == "coordinator" else (place + 1) % 3
        if found["error_code"] not in ("none", "coordinator_not_available"):
            return 0
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def _coordinates(end: End, broker: int, group: str) -> bool:
    described = ask(end, broker, 15, 5, {"groups": [group]})["groups"][0]
    return described["error_code"] not in ("not_coordinator", "coordinator_load_in_progress")


def settle(end: End, world: World, wait: Callable[[], None]) -> None:
    """Return when every broker shows the topics, leaders and in-sync replicas expected."""
    wanted = {
        (name, index): (world.leader(name, index), sorted(row))
        for name, rows in world.rows.items()
        for index, row in enumerate(rows)
    }
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    for broker in range(3):
        while (shown := _shown(end, broker)) != wanted:
            assert time.monotonic() < deadline, (broker, shown, wanted)
            wait()
    wait()


def _shown(end: End, broker: int) -> dict[tuple[str, int], tuple[int, list[int]]]:
    values = ask(end, broker, 3, 12, {"topics": None, "allow_auto_topic_creation": False})
    return {
        (topic["name"], each["partition_index"]): (
            each["leader_id"] - end.first_id,
            sorted(isr - end.first_id for isr in each["isr_nodes"]),
        )
        for topic in values["topics"]
        if topic["name"] != OFFSETS_TOPIC
        for each in topic["partitions"]
    }


def remember(end: End, step: Step, answer: Any) -> None:
    """Keep the ids and epochs that a response gives."""
    if not isinstance(answer, dict) or step.remember is None:
        return
    if step.name == "JoinGroup":
        if answer["member_id"]:
            end.known.setdefault(step.remember, answer["member_id"])
        if answer["error_code"] == "none":
            end.known[Ref("generation", step.values["group_id"])] = answer["generation_id"]
    elif step.name == "ConsumerGroupHeartbeat":
        if answer["error_code"] == "none":
            end.known[step.remember] = answer["member_epoch"]
    elif answer["topics"][0].get("topic_id") is not None:
        end.known[step.remember] = answer["topics"][0]["topic_id"]


def heard(drawer: Drawer, step: Step, answer: Any) -> None:
    """Let the drawer forget a member that was not taken."""
    if step.name == "JoinGroup" and isinstance(answer, dict):
        group = step.values["group_id"]
        is_refused = answer["error_code"] not in ("none", "member_id_required")
        member, known = step.values["member_id"], drawer.members.get(group)
        if is_refused and (member == "" or (member == known and answer["error_code"] == "unknown_member_id")):
            drawer.members.pop(group, None)


def _kept(api: str, value: Any) -> Any:
    """Return a response without the fields that may differ, its lists of named things in order."""
    if isinstance(value, dict):
        compared = [name for name in value if name not in ALLOWED and f"{api}.{name}" not in ALLOWED]
        return {name: _kept(api, value[name]) for name in compared}
    if isinstance(value, list):
        kept = [_kept(api, each) for each in value]
        return sorted(kept, key=repr) if kept and isinstance(kept[0], dict) else kept
    return value


def _errors(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("error_code"), str):
            yield value["error_code"]
        for each in value.values():
            yield from _errors(each)
    elif isinstance(value, list):
        for each in value:
            yield from _errors(each)


def differing(ours: Any, theirs: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield each field that differs, with both values."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in ours.keys() | theirs.keys():
            yield from differing(ours.get(name), theirs.get(name), f"{place}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differing(mine, other, f"{place}[{index}]")
    elif ours != theirs:
        yield place, ours, theirs
