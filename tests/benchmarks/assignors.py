"""How long one thread needs to assign a million partitions: ours beside Kafka's own classes and kafka-python.

    python -m tests.benchmarks.assignors [--rounds 3] [--only sticky] [--json]

CPU time of the calling thread for one call: 2,000 members and 1,000 topics of 1,000 partitions, all subscribed to all,
from nothing, and, for those that keep what is held, after one member has left; sticky from nothing for 500 members,
each on half of 100 topics of 500 partitions. The group is made before, on each side in its own form; rounds of the
sides follow each other in one run, and medians are shown. kafka-python is called once, for range and round-robin.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, Final

import attrs
import numpy as np

from broker.entropy import SplitMix64
from placement.consumer.group import NO_GENERATION, Group, Member, Topic
from placement.consumer.racks import ReplicaRacks
from placement.consumer.ragged import Ragged
from placement.consumer.registry import load_assignor
from placement.consumer.sticky.assignor import StickyAssignor
from placement.consumer.topic_ids import id_text
from tests.benchmarks.report import describe_machine, show
from tests.benchmarks.rounds import Took, in_turn, java_took, kafka_or_none, process_cpu
from tests.kafka.jvm import KafkaJvm

MEMBER_COUNT: Final = 2_000
TOPIC_COUNT: Final = 1_000
TOPIC_SIZE: Final = 1_000
MIXED_MEMBER_COUNT: Final = 500
MIXED_TOPIC_COUNT: Final = 100
MIXED_TOPIC_SIZE: Final = 500


@attrs.frozen
class Work:
    """One line of the table: which assignor on which group."""

    name: str
    assignor: str
    make: Callable[[], Group]


def equal_group(members: tuple[str, ...], held: Ragged | None = None) -> Group:
    """Return a group in which all subscribe to all topics; topics are named by ids, for the server's assignors."""
    chance = random.Random(1)
    topics = tuple(sorted(id_text(chance.randbytes(16)) for _ in range(TOPIC_COUNT)))
    count = len(members)
    owned = held if held is not None else Ragged.of([] for _ in members)
    generations = np.full(count, NO_GENERATION if held is None else 1, np.int32)
    everything = np.tile(np.arange(TOPIC_COUNT, dtype=np.int32), count)
    return Group(
        members=members,
        instance_ids=(None,) * count,
        member_racks=(None,) * count,
        topics=topics,
        topic_ids=(None,) * TOPIC_COUNT,
        partition_counts=np.full(TOPIC_COUNT, TOPIC_SIZE, np.int32),
        subscribed=Ragged(np.arange(count + 1, dtype=np.int64) * TOPIC_COUNT, everything),
        owned_topics=Ragged(owned.starts, owned.values // TOPIC_SIZE),
        owned_numbers=owned.values % TOPIC_SIZE,
        generations=generations,
        subscription_generations=generations,
        replica_racks=ReplicaRacks.unknown(TOPIC_COUNT * TOPIC_SIZE),
    )


def members_named(count: int) -> tuple[str, ...]:
    """Return ids as clients make them: the client's id and a random end."""
    chance = random.Random(2)
    return tuple(f"consumer-{number}-{chance.getrandbits(128):032x}" for number in range(count))


def after_one_left() -> Group:
    """Return the group whose first member has left, the others holding what sticky gave them."""
    members = members_named(MEMBER_COUNT)
    before = StickyAssignor().assign(equal_group(members), SplitMix64(0))
    return equal_group(members[1:], before.rows.take(np.arange(1, MEMBER_COUNT)))


def mixed_group() -> Group:
    """Return the group of different subscriptions."""
    chance = random.Random(3)
    names = [f"topic-{number}" for number in range(MIXED_TOPIC_COUNT)]
    members = [
        Member(id=name, topics=tuple(chance.sample(names, MIXED_TOPIC_COUNT // 2)))
        for name in members_named(MIXED_MEMBER_COUNT)
    ]
    return Group.of(members, [Topic(name=name, partition_count=MIXED_TOPIC_SIZE) for name in names])


def from_nothing() -> Group:
    """Return the group in which nobody holds anything."""
    return equal_group(members_named(MEMBER_COUNT))


WORKS: Final = (
    Work("range", "range", from_nothing),
    Work("round-robin", "roundrobin", from_nothing),
    Work("sticky", "sticky", from_nothing),
    Work("sticky, one left", "sticky", after_one_left),
    Work("cooperative, one left", "cooperative-sticky", after_one_left),
    Work("uniform (server)", "uniform", from_nothing),
    Work("sticky, mixed subscriptions", "sticky", mixed_group),
)


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.assignors")
    parser.add_argument("--rounds", type=int, default=3, help="measured calls a line (default: %(default)s)")
    parser.add_argument("--only", help="lines whose name begins so")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    options = parser.parse_args()
    works = [work for work in WORKS if work.name.startswith(options.only or "")]
    with ExitStack() as stack:
        kafka = kafka_or_none(stack)
        rows = [measure(work, kafka, options.rounds) for work in works]
    title = "median CPU ms of one call"
    show(title, describe_machine("numpy", "numba", "kafka-python"), rows, as_json=options.json)
    return 0


def measure(work: Work, kafka: KafkaJvm | None, rounds: int) -> dict[str, object]:
    """Return one row of the table: medians over `rounds`, after one call that is not counted."""
    group = work.make()
    contestants = {"ours": lambda: our_call(work)}
    if kafka is not None:
        asked = {"assignor": work.assignor, **({"served": True} if work.assignor == "uniform" else {})}
        kafka.call("assignor_time", **asked, steps=[step_of(group, work.assignor)])
        # The group stays with the other side, which makes new objects of it for each call.
        contestants["Kafka"] = lambda: java_took(kafka.call("assignor_time", **asked))
    found = in_turn(contestants, rounds, work.name)
    milliseconds = {name: 1e3 / medians.cpu_rate for name, medians in found.items()}
    ours_ms, kafka_ms, python_ns = milliseconds["ours"], milliseconds.get("Kafka"), kafka_python_cpu_ns(work, group)
    return {
        "assignor": work.name,
        "ours ms": round(ours_ms, 1),
        "Kafka ms": None if kafka_ms is None else round(kafka_ms, 1),
        "kafka-python ms": None if python_ns is None else round(python_ns / 1e6, 1),
        "times Kafka": None if kafka_ms is None else round(kafka_ms / ours_ms, 1),
    }


def our_call(work: Work) -> Took:
    """Measure one call on a new group, so that nothing that was worked out of it before is at hand."""
    policy, group = load_assignor(work.assignor), work.make()
    return process_cpu(lambda: policy.assign(group, SplitMix64(0)))


def step_of(group: Group, assignor: str) -> dict[str, Any]:
    """Return the group as a step of a golden case."""
    counts, numbers = group.partition_counts.tolist(), group.owned_numbers
    starts = group.owned_topics.starts.tolist()
    members = []
    for place, member in enumerate(group.members):
        topics = group.owned_topics.row(place).tolist()
        owned = [
            [group.topics[t], n]
            for t, n in zip(topics, numbers[starts[place] : starts[place + 1]].tolist(), strict=True)
        ]
        generation = int(group.generations[place])
        members.append(
            {
                "id": member,
                "topics": [group.topics[topic] for topic in group.subscribed.row(place).tolist()],
                "assignment": [],
                "generation": generation,
                "owned": owned if assignor == "cooperative-sticky" else [],
                "user_data": {"partitions": owned, "generation": generation} if "sticky" in assignor else None,
            }
        )
    sizes = zip(group.topics, counts, strict=True)
    return {"topics": [{"id": name, "name": name, "partitions": count} for name, count in sizes], "members": members}


def kafka_python_cpu_ns(work: Work, group: Group) -> int | None:
    """Return the CPU nanoseconds of one call of kafka-python's assignor, None where there is none to be measured."""
    try:
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    except ImportError:
        return None
    policies = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
    if work.assignor not in policies:
        return None
    numbers = {topic: set(range(TOPIC_SIZE)) for topic in group.topics}
    cluster = SimpleNamespace(partitions_for_topic=numbers.get)
    members = [
        SimpleNamespace(member_id=member, group_instance_id=None, metadata=SimpleNamespace(topics=group.topics))
        for member in group.members
    ]
    begin = time.thread_time_ns()
    policies[work.assignor].assign(cluster, members)
    return time.thread_time_ns() - begin


if __name__ == "__main__":
    sys.exit(main())
