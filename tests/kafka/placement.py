"""Random golden cases of placement, of assignors and of Java's hash tables: drawn, answered by Kafka, run on ours.

What it decides: whether, for one drawn input, the two answers are equal: the same rows, lists, sets or orders, or an
error of the same Java class with the same message, and the generator left in the same state.

How: a case is one of a golden file's, and is run as those are; placers are asked by their path for large topics too.
Inputs grow with the number of the case, but for a large one now and then. What differs is made smaller by taking
entries out of its lists and partitions from its topics.

Left out: calls of sticky assignors that Kafka does not end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

import attrs

from broker.cluster import BrokerView, Int32Array
from broker.entropy import RandomSource
from broker.ids import TopicPartition
from broker.java.hash_table import HashTable
from broker.java.string_hash import java_map_order, java_set_copy_order
from broker.releases import NEWEST, Release
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import NO_METADATA, Group, Member, Topic
from placement.consumer.uniform.assignor import UniformAssignor
from placement.placers.broker_columns import BrokerColumns
from placement.placers.classic import ClassicStart, compiled_rows, ring_of
from placement.placers.striped import striped_positions
from placement.spec import PlacementSpec
from tests.golden.consumers import run_server
from tests.golden.files import run_case
from tests.golden.runners import Runner, run_admin_utils, run_striped, runners_of
from tests.kafka.areas import Area, fewer
from tests.kafka.draws import DRAWN, GROUPS, draw_keys, drawn_life, drawn_overflow
from tests.kafka.jvm import Json, KafkaJvm
from tests.kafka.releases import WITH_ADMIN_UTILS

GROWING_CASE_COUNT: Final = 1000  # Up to here inputs grow, so that the first mismatch is a small one.
CASES_PER_SIZE: Final = 60
LARGE_EVERY: Final = 50
LARGE_SIZE: Final = 40
ENDLESS: Final = "java.util.concurrent.TimeoutException"
"""What the Java process says it got from a call that did not end."""
CLASSIC: Final = ("admin_utils", "admin_utils_overflow")
"""The areas of AdminUtils."""
HASHES: Final = ("hash_orders", "hash_set")
AREAS: Final = (*CLASSIC, *sorted(DRAWN.keys() - set(CLASSIC)), *sorted(GROUPS), *HASHES)

Drawn: TypeAlias = dict[str, Json]


def areas(kafka: KafkaJvm, names: Sequence[str] = AREAS) -> list[Area[Drawn]]:
    """Return the named areas that the release has."""
    known = [name for name in AREAS if name not in CLASSIC or kafka.release <= WITH_ADMIN_UTILS]
    return [_area(kafka, name) for name in known if name in names]


def _area(kafka: KafkaJvm, name: str) -> Area[Drawn]:
    algorithm = "admin_utils" if name in CLASSIC else name

    def draw(seed: int, number: int) -> Drawn:
        chance = random.Random(f"{seed}/{name}/{number}")
        large = number % LARGE_EVERY == LARGE_EVERY - 1
        size = LARGE_SIZE if large else 2 + min(number, GROWING_CASE_COUNT) // CASES_PER_SIZE
        return drawn(kafka, name, chance, size)

    def answer_count(case: Drawn) -> int:
        return len(case.get("steps", case.get("calls", "1")))

    return Area(
        name=name,
        draw=draw,
        difference=lambda case: difference(kafka, algorithm, case),
        smaller=smaller,
        answer_count=answer_count,
    )


def drawn(kafka: KafkaJvm, name: str, chance: random.Random, size: int) -> Drawn:
    """Draw the input of a case of an area."""
    if name in GROUPS:
        goes_on = name == "server_uniform" and chance.random() < 0.5
        return dict(drawn_life(kafka, name, chance, size, goes_on=goes_on))
    if name == "hash_orders":
        return {"keys": draw_keys(chance, 2 * size)}
    if name == "hash_set":
        # Few bins of a table of 64 and more, so that trees grow, shrink, are cut and become lists again.
        pool = [one * 64 + chance.randrange(1 + size % 4) for one in range(10 + 2 * size)]
        return {"hashes": [chance.choice(pool) - chance.choice((0, 2**31)) for _ in range(20 * size)]}
    draw = drawn_overflow if name == "admin_utils_overflow" else DRAWN[name]
    return dict(draw(chance, size))


def difference(kafka: KafkaJvm, algorithm: str, given: Drawn) -> str | None:
    """Return where our answer to an input differs from Kafka's."""
    answer = kafka.ask(algorithm, given)
    if answer.get("expected_error", {}).get("class") == ENDLESS:
        return None
    for runner in runners(kafka.release, algorithm, given, "expected" in answer):
        found = run_case({"input": given, **answer}, runner)
        if found is not None:
            return f"{found}\n  Kafka {answer}"
    return None


def runners(release: Release, algorithm: str, given: Drawn, is_placed: bool) -> list[Runner]:
    """Return what answers an input: a placer by its path for large topics too, where Kafka places."""
    if algorithm in HASHES:
        return [{"hash_orders": run_hash_orders, "hash_set": run_hash_set}[algorithm]]
    if given.get("goes_on"):
        return [partial(run_server, make=UniformGoingOn)]
    found = [runners_of(release)[algorithm]]
    if algorithm == "striped_replica_placer":
        found.append(partial(run_striped, placer=StripedFast(release)))
    if algorithm == "admin_utils" and is_placed and given["fixed_start_index"] >= 0:
        found.append(partial(run_admin_utils, placer_from=ClassicFast))
    return found


def run_hash_orders(given: Mapping[str, Json]) -> Json:
    """Answer the orders of a HashMap filled key by key, and of a HashSet made of all keys at once."""
    keys = given["keys"]
    return {"map": list(java_map_order(keys)), "set_copy": list(java_set_copy_order(keys))}


def run_hash_set(given: Mapping[str, Json]) -> Json:
    """Answer a set's first hash after each is put in, or taken out if it is there, and all in the end."""
    table, there, first = HashTable(), set[int](), []
    for code in given["hashes"]:
        key = (_spread(code), True, b"")
        (table.remove if code in there else table.add)(key)
        there ^= {code}
        first.append(_spread(table.first()[0]) if there else 0)
    return {"first": first, "left": [_spread(key[0]) for key in table]}


def _spread(code: int) -> int:
    """Return Java's HashMap.hash of a hash code; doing it twice gives the code back."""
    spread = (code % 2**32) ^ (code % 2**32 >> 16)
    return spread - 2**32 if spread >> 31 else spread


@attrs.frozen
class ClassicFast:
    """The classic placer by its path for large topics."""

    start_index: int

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        columns = BrokerColumns.of(brokers)
        start = ClassicStart(start_index=self.start_index, shift=self.start_index)
        return compiled_rows(spec, ring_of(columns), start, columns.ids)


@attrs.frozen
class StripedFast:
    """The striped placer by its path for large topics."""

    release: Release = NEWEST

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        columns = BrokerColumns.of(brokers)
        return columns.ids[striped_positions(spec, columns, entropy, self.release)]


@attrs.define
class UniformGoingOn:
    """The uniform assignor where each member holds what the last call gave it."""

    held: dict[str, tuple[TopicPartition, ...]] = attrs.field(factory=dict)

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        counts = zip(group.topics, group.partition_counts.tolist(), strict=True)
        members = [
            Member(
                id=member,
                topics=tuple(group.topics[topic] for topic in group.subscribed.row(place).tolist()),
                owned=self.held.get(member, ()),
            )
            for place, member in enumerate(group.members)
        ]
        known = [Topic(name=name, partition_count=count) for name, count in counts if count != NO_METADATA]
        answer = UniformAssignor().assign(Group.of(members, known), entropy)
        self.held = {member: answer.of(member) for member in group.members}
        return answer


def smaller(given: Drawn) -> Iterator[Drawn]:
    """Yield inputs with fewer entries in one of their lists, or fewer partitions in one of their topics or calls."""
    for key, value in given.items():
        if isinstance(value, list) and key != "replica_racks":
            for less in fewer(value):
                yield {**given, key: less}
            for place, entry in enumerate(value):
                if isinstance(entry, dict):
                    for less_entry in smaller(entry):
                        yield {**given, key: [*value[:place], less_entry, *value[place + 1 :]]}
        elif isinstance(value, dict):
            yield from ({**given, key: less} for less in smaller(value))
        elif key == "partitions" and value > 1:
            racks = given.get("replica_racks")
            yield {**given, key: value // 2, **({} if racks is None else {"replica_racks": racks[: value // 2]})}
