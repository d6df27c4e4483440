"""Draw random inputs for the golden files of placement.

Constraints: case k of an algorithm is a function of (seed, algorithm, k) alone, but that the later steps of a group's
life hold what Kafka gave in the earlier ones.

How: the generators are those of the differential comparison, which lean to the edges; their values are written as the
golden files write them.

Left out: as there. Keys and groups beyond 64 bytes; names that are no text in Java.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from broker.cluster import BrokerView
from broker.ids import INT32_MAX
from placement.consumer.group import Member, Topic
from placement.spec import PlacementSpec
from tests.kafka.assignor_differential import STEP_COUNT_MAX
from tests.kafka.assignor_lives import Life
from tests.kafka.differential.placers import draw_brokers, draw_java_long, draw_keys, draw_spec
from tests.kafka.golden.jvm import GoldenJvm, Json

CASE_COUNT: Final = 60
"""How many cases a file gets; the inputs grow with the number of the case."""
CASES_PER_SIZE: Final = 4


def random_cases(kafka: GoldenJvm, algorithm: str, seed: int) -> Iterator[Mapping[str, Json]]:
    """Yield name and input of each new case of a seed."""
    for number in range(CASE_COUNT):
        chance = random.Random(f"golden/{seed}/{algorithm}/{number}")
        size = 2 + number // CASES_PER_SIZE
        is_group = algorithm in GROUPS
        given = drawn_life(kafka, algorithm, chance, size) if is_group else DRAWN[algorithm](chance, size)
        yield {"name": f"seed-{seed}-{number}", "input": given}


def drawn_classic(chance: random.Random, size: int) -> Json:
    brokers = draw_brokers(chance, size, fenced_share=0)
    spec = draw_spec(chance, len(brokers), size)
    start = chance.choice((-7, -1, 0, chance.randrange(2 * size), chance.randrange(2 * size)))
    return {
        "brokers": [{"id": broker.id, "rack": broker.rack} for broker in brokers],
        "partitions": spec.partition_count,
        "replication_factor": spec.replication_factor,
        "fixed_start_index": start,
        "start_partition_id": spec.start_partition,
        "random_seed": draw_java_long(chance) if start < 0 else None,
    }


def drawn_striped(chance: random.Random, size: int) -> Json:
    brokers = draw_brokers(chance, size, fenced_share=chance.choice((0, 0, 0.2, 0.6, 1)))
    calls = [draw_spec(chance, len(brokers), size) for _ in range(chance.randint(1, 4))]
    return {
        "random_seed": draw_java_long(chance),
        "brokers": [_broker(broker) for broker in brokers],
        "calls": [_call(call) for call in calls],
    }


def _broker(broker: BrokerView) -> Json:
    return {"id": broker.id, "rack": broker.rack, "fenced": broker.fenced}


def _call(spec: PlacementSpec) -> Json:
    return {
        "start_partition": spec.start_partition,
        "partitions": spec.partition_count,
        "replication_factor": spec.replication_factor,
    }


def drawn_draws(chance: random.Random, size: int) -> Json:
    bounds = (1, 2, 3, 2**30, 2**30 + 1, INT32_MAX, chance.randrange(1, 2**31))
    kinds: tuple[Callable[[], Json], ...] = (
        lambda: {"op": "next_int"},
        lambda: {"op": "next_int_bound", "bound": chance.choice(bounds)},
        lambda: {"op": "shuffle", "n": chance.randrange(2 * size)},
    )
    return {"seed": draw_java_long(chance), "ops": [chance.choice(kinds)() for _ in range(size)]}


def drawn_key(chance: random.Random, size: int) -> Json:
    return {"key_hex": chance.randbytes(chance.randrange(4 * size)).hex(), "partitions": _partition_count(chance)}


def drawn_group(chance: random.Random, size: int) -> Json:
    names = [key for key in draw_keys(chance, size) if key is not None]
    return {"group_id": "-".join(chance.sample(names, min(len(names), 3))), "partitions": _partition_count(chance)}


def _partition_count(chance: random.Random) -> int:
    return chance.choice((1, 2, 50, 64, INT32_MAX, chance.randrange(1, 2**31)))


def drawn_life(kafka: GoldenJvm, algorithm: str, chance: random.Random, size: int) -> Json:
    """Return a group's life of some steps; it ends at the first at which Kafka throws."""
    assignor, served = GROUPS[algorithm]
    life = Life.begin(chance, size, served=served, announcing=assignor == "cooperative-sticky")
    steps: list[Json] = []
    given = {"assignor": assignor, "steps": steps}
    for _ in range(1 + chance.randrange(STEP_COUNT_MAX)):
        steps.append(_server_step(life) if served else _client_step(life, assignor))
        answer = kafka.ask(algorithm, given)
        if "expected" not in answer:
            break
        life.hold(_held(answer["expected"]["steps"][-1]["assignment"], served))
        life.change()
    return given


def _held(assignment: Mapping[str, Json], served: bool) -> dict[str, list[tuple[str, int]]]:
    if served:
        return {
            member: [(topic, number) for topic, numbers in rows for number in numbers]
            for member, rows in assignment.items()
        }
    return {member: [(topic, number) for topic, number in rows] for member, rows in assignment.items()}


def _client_step(life: Life, assignor: str) -> Json:
    return {
        "topics": [_topic(topic) for topic in life.topics],
        "members": [_client_member(member, assignor) for member in life.members],
    }


def _topic(topic: Topic) -> Json:
    given = {"name": topic.name, "partitions": topic.partition_count}
    return given if topic.replica_racks is None else {**given, "replica_racks": topic.replica_racks}


def _client_member(member: Member, assignor: str) -> Json:
    given: dict[str, Json] = {"id": member.id, "topics": member.topics}
    optional = {"instance_id": member.instance_id, "rack": member.rack}
    given |= {name: value for name, value in optional.items() if value is not None}
    if assignor not in ("sticky", "cooperative-sticky"):
        return given
    announced = member.subscription_generation
    owned = [[one.topic, one.partition] for one in member.owned]
    data = {"generation": member.generation}
    return {
        **given,
        "generation": member.generation if announced is None else announced,
        "owned": owned,
        "user_data": {"partitions": owned, **data} if assignor == "sticky" else data,
    }


def _server_step(life: Life) -> Json:
    subscriptions = {frozenset(member.topics) for member in life.members}
    return {
        "subscription_type": "heterogeneous" if len(subscriptions) > 1 else "homogeneous",
        "topics": [{"id": topic.name, "partitions": topic.partition_count} for topic in life.topics],
        "members": [_server_member(member) for member in life.members],
    }


def _server_member(member: Member) -> Json:
    held: dict[str, set[int]] = {}
    for one in member.owned:
        held.setdefault(one.topic, set()).add(one.partition)
    given = {
        "id": member.id,
        "topics": member.topics,
        "assignment": [[topic, sorted(numbers)] for topic, numbers in held.items()],
    }
    return given if member.instance_id is None else {**given, "instance_id": member.instance_id}


GROUPS: Final = {
    "consumer_cooperative_sticky": ("cooperative-sticky", False),
    "consumer_range": ("range", False),
    "consumer_roundrobin": ("roundrobin", False),
    "consumer_sticky": ("sticky", False),
    "server_range": ("range", True),
    "server_uniform": ("uniform", True),
}
"""By algorithm: the assignor's name, and whether it is the group coordinator's."""

DRAWN: Final[Mapping[str, Callable[[random.Random, int], Json]]] = {
    "admin_utils": drawn_classic,
    "group_coordinator_partition": drawn_group,
    "java_random": drawn_draws,
    "producer_key_partition": drawn_key,
    "striped_replica_placer": drawn_striped,
}
"""By algorithm: what draws an input from a generator and a size."""
