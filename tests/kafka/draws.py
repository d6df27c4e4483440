"""Draw random inputs of golden cases of placement.

Constraints: the input of a case is a function of its generator and size alone, but that the later steps of a group's
life hold what Kafka gave in the earlier ones.

How: inputs lean to the edges: no brokers, factors around the number of brokers, one rack, a rack for each, some brokers
without a rack, all fenced, counts of 0 and below, and names whose hashes collide, also so many that Java makes trees of
its bins. Groups are those of `tests.kafka.lives`.

Left out: keys and groups beyond 64 bytes; names that are no text in Java.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from broker.cluster import BrokerView
from broker.ids import INT32_MAX, BrokerId
from placement.consumer.group import Member, Topic
from placement.spec import PlacementSpec
from tests.kafka.jvm import Json, KafkaJvm
from tests.kafka.lives import ONE_BIN_NAMES, RACK_NAMES, Life

STEP_COUNT_MAX: Final = 5
CASE_COUNT: Final = 60
"""How many new cases a golden file gets of a seed; the inputs grow with the number of the case."""
CASES_PER_SIZE: Final = 4


def random_cases(kafka: KafkaJvm, algorithm: str, seed: int) -> Iterator[Mapping[str, Json]]:
    """Yield name and input of each new case of a seed."""
    for number in range(CASE_COUNT):
        chance = random.Random(f"golden/{seed}/{algorithm}/{number}")
        size = 2 + number // CASES_PER_SIZE
        is_group = algorithm in GROUPS
        given = drawn_life(kafka, algorithm, chance, size) if is_group else DRAWN[algorithm](chance, size)
        yield {"name": f"seed-{seed}-{number}", "input": given}


def draw_java_long(chance: random.Random) -> int:
    return chance.choice((0, 1, -1, 2**63 - 1, -(2**63), chance.randrange(-(2**63), 2**63)))


def draw_ids(chance: random.Random, size: int) -> list[BrokerId]:
    count = chance.randrange(size + 1)
    ids = chance.sample(range(chance.choice((count, 3 * size, 2**31))), count)
    return [BrokerId(each) for each in ids]


def draw_rack_names(chance: random.Random) -> Sequence[str]:
    if chance.random() < 0.3:
        return [f"zone-{number}" for number in range(chance.randint(1, 40))]
    return chance.sample(RACK_NAMES, chance.randint(1, len(RACK_NAMES)))


def draw_brokers(chance: random.Random, size: int, *, fenced_share: float) -> list[BrokerView]:
    names = draw_rack_names(chance)
    rackless_share = chance.choice((0, 0, 0, 1, 0.2))
    return [
        BrokerView(
            id=each,
            rack=None if chance.random() < rackless_share else chance.choice(names),
            fenced=chance.random() < fenced_share,
        )
        for each in draw_ids(chance, size)
    ]


def draw_spec(chance: random.Random, broker_count: int, size: int) -> PlacementSpec:
    return PlacementSpec(
        start_partition=chance.choice((0, 0, -3, chance.randrange(4 * size))),
        partition_count=chance.choice((-2, 0, 1)) if chance.random() < 0.1 else chance.randint(1, 6 * size),
        replication_factor=chance.randint(-1, broker_count + 1)
        if chance.random() < 0.3
        else chance.randint(1, max(1, min(broker_count, 5))),
    )


def draw_keys(chance: random.Random, size: int) -> list[str | None]:
    """Return keys, some of them twice or null, some of one hash or of one bin, often too many for a list."""
    names = [f"{chance.choice(('topic', 'consumer', 'é'))}-{chance.randrange(10 * size)}" for _ in range(size)]
    twins = ["".join(chance.choice(("Aa", "BB")) for _ in range(6)) for _ in range(chance.choice((0, 3, size)))]
    neighbours = chance.sample(ONE_BIN_NAMES, chance.choice((0, 3, min(size, len(ONE_BIN_NAMES)))))
    keys: list[str | None] = [*names, *twins, *neighbours, *RACK_NAMES[:size], None]
    chance.shuffle(keys)
    return keys


def drawn_classic(chance: random.Random, size: int) -> Json:
    """Draw a call of the classic placer."""
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


def drawn_overflow(chance: random.Random, size: int) -> Json:
    """Draw a call of the classic placer whose sums leave Java's int; with racks Kafka would need minutes for it."""
    brokers = [{"id": each, "rack": None} for each in draw_ids(chance, size)]
    spec = draw_spec(chance, len(brokers), size)
    start = chance.choice((0, 1, size))
    if chance.random() < 0.3:
        start = INT32_MAX - max(0, spec.partition_count) - chance.randrange(3)
    index = INT32_MAX - chance.choice((0, 1, chance.randrange(7 * size)))
    if chance.random() < 0.3:
        index = chance.randrange(INT32_MAX)
    return {
        "brokers": brokers,
        "partitions": spec.partition_count,
        "replication_factor": spec.replication_factor,
        "fixed_start_index": index,
        "start_partition_id": start,
        "random_seed": None,
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


def drawn_life(kafka: KafkaJvm, algorithm: str, chance: random.Random, size: int, *, goes_on: bool = False) -> Json:
    """Return a group's life of some steps; it ends at the first at which Kafka throws.

    `goes_on`: members hold what the step before gave them, whatever the step lists; for groups of the coordinator.
    """
    assignor, served = GROUPS[algorithm]
    life = Life.begin(chance, size, served=served, announcing=assignor == "cooperative-sticky")
    steps: list[Json] = []
    given: Json = {"assignor": assignor, "steps": steps, **({"goes_on": True} if goes_on else {})}
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
