"""Run the golden cases of consumer groups: client-side and server-side assignors, step by step.

One assignor lives through all steps of a case, as the sticky ones remember the highest generation they have seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from broker.entropy import SplitMix64
from broker.ids import PartitionId, TopicPartition
from broker.java.hash_order import uuid_key
from placement.consumer.assignment import ConsumerAssignor, GroupAssignment
from placement.consumer.client_range import RangeAssignor, ServerRangeAssignor
from placement.consumer.group import NO_GENERATION, Group, Member, Topic
from placement.consumer.round_robin import RoundRobinAssignor
from placement.consumer.sticky.assignor import CooperativeStickyAssignor, StickyAssignor
from placement.consumer.topic_ids import topic_id
from placement.consumer.uniform.assignor import UniformAssignor

Json: TypeAlias = Any


def client_group(step: Mapping[str, Json], assignor: str) -> Group:
    """Return the group of one step of a client-side case."""
    topics = [
        Topic(name=one["name"], partition_count=one["partitions"], replica_racks=_racks(one.get("replica_racks")))
        for one in step["topics"]
    ]
    return Group.of([_client_member(one, assignor) for one in step["members"]], topics)


def _racks(racks: Json) -> tuple[tuple[str, ...], ...] | None:
    return None if racks is None else tuple(tuple(row) for row in racks)


def _client_member(given: Mapping[str, Json], assignor: str) -> Member:
    return Member(
        id=given["id"],
        topics=tuple(given["topics"]),
        instance_id=given.get("instance_id"),
        rack=given.get("rack"),
        **_prior(given, assignor),
    )


def _prior(given: Mapping[str, Json], assignor: str) -> dict[str, Any]:
    """Return what a member held, as the assignor reads it: sticky from the user data, cooperative-sticky from both."""
    if "owned" not in given:
        return {}
    announced, data = given["generation"], given["user_data"] or {}
    if assignor == "sticky":
        pairs, generation = data.get("partitions", []), data.get("generation", NO_GENERATION)
    else:
        pairs = given["owned"]
        generation = announced if announced >= 0 else data.get("generation", NO_GENERATION)
    owned = tuple(TopicPartition(topic, PartitionId(partition)) for topic, partition in pairs)
    return {"owned": owned, "generation": generation, "subscription_generation": announced}


def run_client(given: Mapping[str, Json], make: Callable[[], ConsumerAssignor]) -> Json:
    """Answer the steps of a case of a client-side assignor."""
    assignor, answers = make(), []
    for step in given["steps"]:
        answer = assignor.assign(client_group(step, given["assignor"]), SplitMix64(0))
        answers.append({"assignment": {member: _pairs(answer, member) for member in answer.group.members}})
    return {"steps": answers}


def _pairs(answer: GroupAssignment, member: str) -> Json:
    return [[one.topic, one.partition] for one in answer.of(member)]


def server_group(step: Mapping[str, Json]) -> Group:
    """Return the group of one step of a server-side case; topics are named by their ids."""
    topics = [Topic(name=one["id"], partition_count=one["partitions"]) for one in step["topics"]]
    return Group.of([_server_member(one) for one in step["members"]], topics)


def _server_member(given: Mapping[str, Json]) -> Member:
    return Member(
        id=given["id"],
        topics=tuple(given["topics"]),
        instance_id=given.get("instance_id"),
        owned=tuple(
            TopicPartition(topic, PartitionId(number)) for topic, numbers in given["assignment"] for number in numbers
        ),
    )


def run_server(given: Mapping[str, Json], make: Callable[[], ConsumerAssignor]) -> Json:
    """Answer the steps of a case of a group coordinator's assignor."""
    assignor, answers = make(), list[Json]()
    for step in given["steps"]:
        answer = assignor.assign(server_group(step), SplitMix64(0))
        members = () if answer.silent else answer.group.members
        answers.append({"assignment": {member: _sets(answer, member) for member in members}})
    return {"steps": answers}


def _sets(answer: GroupAssignment, member: str) -> Json:
    """Return a member's partitions as the server's answers are printed: by id of the topic, numbers ascending."""
    held: dict[str, list[int]] = {}
    for one in answer.of(member):
        held.setdefault(one.topic, []).append(one.partition)
    return [[topic, sorted(held[topic])] for topic in sorted(held, key=lambda name: uuid_key(topic_id(name, None)))]


ASSIGNOR_RUNNERS: Final[Mapping[str, Callable[[Mapping[str, Json]], Json]]] = {
    "consumer_range": partial(run_client, make=RangeAssignor),
    "consumer_roundrobin": partial(run_client, make=RoundRobinAssignor),
    "consumer_sticky": partial(run_client, make=StickyAssignor),
    "consumer_cooperative_sticky": partial(run_client, make=CooperativeStickyAssignor),
    "server_range": partial(run_server, make=ServerRangeAssignor),
    "server_uniform": partial(run_server, make=UniformAssignor),
}
