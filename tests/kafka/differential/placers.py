"""Random inputs on which ours and Kafka's own classes must say the same.

What it decides: whether, for one seeded input, the two answers are equal: the same rows, or an
error of the same Java class with the same message, and the generator left in the same state.

Constraints: case k of an algorithm is a function of (seed, algorithm, k) alone, so that any
mismatch is replayed by its number; inputs grow with k, but for a large one now and then.

How
Every algorithm has one function that draws an input, asks both sides and compares. Inputs lean
to the edges: no brokers, factors around the number of brokers, one rack, a rack for each,
some brokers without a rack, all fenced, counts of 0 and below, and names whose hashes collide,
also so many that Java makes trees of its bins.

Example: check(kafka, "striped", seed=1, case=17) raises AssertionError on a mismatch.

Left out: start indexes near 2^31 together with racks, for which Kafka needs minutes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import BrokerView, Int32Array
from broker.entropy import JavaRandom, RandomSource
from broker.errors import RefusedError
from broker.ids import INT32_MAX, BrokerId
from broker.java.string_hash import java_map_order, java_set_copy_order, java_string_hash
from broker.releases import Release
from placement.placers.broker_columns import BrokerColumns
from placement.placers.classic import ClassicPlacer, ClassicStart, compiled_rows, rack_alternated_brokers, ring_of
from placement.placers.striped import StripedPlacer, striped_positions
from placement.spec import PlacementSpec, ReplicaPlacer
from tests.kafka.differential.areas import Area
from tests.kafka.jvm import KafkaError, KafkaJvm, Placed
from tests.kafka.releases import WITH_ADMIN_UTILS

GROWING_CASE_COUNT: Final = 1000  # Up to here inputs grow, so that the first mismatch is a small one.
LARGE_EVERY: Final = 50
LARGE_SIZE: Final = 90
RACK_NAMES: Final = ("a", "b", "A", "9", "10", "_", "", "Aa", "BB", "AaAa", "BBBB", "AaBB", "é", "\U0001f600", "rack-1")
ONE_BIN: Final = 5
ONE_BIN_NAMES: Final = [
    name
    for name in map("bin-{}".format, range(6000))
    if ((java_string_hash(name) % 2**32) ^ (java_string_hash(name) % 2**32 >> 16)) % 64 == ONE_BIN
]
"""Names that share a bin of a table of 64, and some of them of larger ones, though their hashes differ."""


def check(kafka: KafkaJvm, algorithm: str, *, seed: int, case: int) -> None:
    """Draw case number `case` of `algorithm`, ask both, and raise AssertionError unless they agree."""
    chance = random.Random(f"{seed}/{algorithm}/{case}")
    ALGORITHMS[algorithm](kafka, chance, _size(case))


def check_classic(kafka: KafkaJvm, chance: random.Random, size: int) -> None:
    brokers = draw_brokers(chance, size, fenced_share=0)
    spec = draw_spec(chance, len(brokers), size)
    start_index = chance.choice((-7, -1, 0, chance.randrange(2 * size), chance.randrange(2 * size)))
    seed = draw_java_long(chance)
    entropy = JavaRandom(seed)
    ours = placed_by(ClassicPlacer(fixed_start_index=start_index), spec, brokers, entropy)
    theirs, next_int = kafka.classic(brokers, spec, fixed_start_index=start_index, seed=seed)
    shown = f"{spec} on {brokers}, start index {start_index}, seed {seed}"
    assert_same(ours, theirs, shown)
    assert entropy.next_int() == next_int, f"another number of draws for {shown}"
    if start_index >= 0 and not isinstance(theirs, KafkaError):
        fast = placed_by(ClassicFast(start_index), spec, brokers, entropy)
        assert_same(fast, theirs, f"fast path: {shown}")


def check_classic_overflow(kafka: KafkaJvm, chance: random.Random, size: int) -> None:
    # Without racks: with them, Kafka walks up to 2^31 candidates until its sum is positive again.
    brokers = [BrokerView(id=each) for each in draw_ids(chance, size)]
    spec = attrs.evolve(draw_spec(chance, len(brokers), size), start_partition=chance.choice((0, 1, size)))
    if chance.random() < 0.3:
        spec = attrs.evolve(spec, start_partition=INT32_MAX - max(0, spec.partition_count) - chance.randrange(3))
    start_index = INT32_MAX - chance.choice((0, 1, chance.randrange(7 * size)))
    if chance.random() < 0.3:
        start_index = chance.randrange(INT32_MAX)
    theirs, _ = kafka.classic(brokers, spec, fixed_start_index=start_index, seed=0)
    ours = placed_by(ClassicPlacer(fixed_start_index=start_index), spec, brokers, JavaRandom(0))
    assert_same(ours, theirs, f"{spec} on {brokers}, start index {start_index}")


def check_rack_alternated(kafka: KafkaJvm, chance: random.Random, size: int) -> None:
    names = draw_rack_names(chance)
    brokers = [BrokerView(id=each, rack=chance.choice(names)) for each in draw_ids(chance, size)]
    ours = [int(each) for each in rack_alternated_brokers(brokers)]
    assert ours == kafka.rack_alternated(brokers), brokers


def check_striped(kafka: KafkaJvm, chance: random.Random, size: int) -> None:
    brokers = draw_brokers(chance, size, fenced_share=chance.choice((0, 0, 0.2, 0.6, 1)))
    specs = [draw_spec(chance, len(brokers), size) for _ in range(chance.randint(1, 4))]
    seed = draw_java_long(chance)
    theirs, next_int = kafka.striped(brokers, specs, seed=seed)
    placers: tuple[ReplicaPlacer, ...] = (StripedPlacer(kafka.release), StripedFast(kafka.release))
    for placer in placers:
        entropy = JavaRandom(seed)
        for number, (spec, their) in enumerate(zip(specs, theirs, strict=True)):
            ours = placed_by(placer, spec, brokers, entropy)
            assert_same(ours, their, f"{placer}, call {number} of {specs} on {brokers}, seed {seed}")
        assert entropy.next_int() == next_int, f"{placer} draws otherwise for {specs} on {brokers}, seed {seed}"


def check_random(kafka: KafkaJvm, chance: random.Random, size: int) -> None:
    seed = draw_java_long(chance)
    bounds = (1, 2, 3, 2**30, 2**30 + 1, 2**31 - 1, chance.randrange(1, 2**31))
    draws = [
        chance.choice((("n", 0), ("b", chance.choice(bounds)), ("s", chance.randrange(size)))) for _ in range(size)
    ]
    entropy = JavaRandom(seed)
    ours = [draw_from(entropy, kind, argument) for kind, argument in draws]
    assert ours == kafka.random(seed, draws), f"seed {seed}, draws {draws}"


def check_map_order(kafka: KafkaJvm, chance: random.Random, size: int) -> None:
    keys = draw_keys(chance, size)
    assert places(java_map_order(keys), keys) == kafka.map_order(keys), keys


def check_set_copy_order(kafka: KafkaJvm, chance: random.Random, size: int) -> None:
    keys = draw_keys(chance, size)
    assert places(java_set_copy_order(keys), keys) == kafka.set_copy_order(keys), keys


ALGORITHMS: Final[dict[str, Callable[[KafkaJvm, random.Random, int], None]]] = {
    "classic": check_classic,
    "classic_overflow": check_classic_overflow,
    "rack_alternated": check_rack_alternated,
    "striped": check_striped,
    "random": check_random,
    "map_order": check_map_order,
    "set_copy_order": check_set_copy_order,
}


CLASSIC: Final = frozenset({"classic", "classic_overflow", "rack_alternated"})
"""The algorithms of AdminUtils, which went after 4.0."""


def algorithms_of(release: Release) -> list[str]:
    """Return the algorithms that a release of Kafka has."""
    return sorted(name for name in ALGORITHMS if name not in CLASSIC or release <= WITH_ADMIN_UTILS)


@attrs.frozen
class ClassicFast:
    """The classic placer by its fast path alone, which `place` takes for large topics only."""

    start_index: int

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        columns = BrokerColumns.of(brokers)
        start = ClassicStart(start_index=self.start_index, shift=self.start_index)
        return compiled_rows(spec, ring_of(columns), start, columns.ids)


@attrs.frozen
class StripedFast:
    """The striped placer by its fast path alone, which `place` takes for large topics only."""

    release: Release

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        columns = BrokerColumns.of(brokers)
        return columns.ids[striped_positions(spec, columns, entropy, self.release)]


def placed_by(
    placer: ReplicaPlacer, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource
) -> Placed:
    """Return our answer in the form of Kafka's: the rows, or the error it stands for."""
    try:
        return placer.place(spec, brokers, entropy)
    except RefusedError as error:
        return KafkaError(error.kafka_class, str(error))


def assert_same(ours: Placed, theirs: Placed, shown: str) -> None:
    """Compare two answers; a matrix without rows has no width in Kafka."""
    if isinstance(ours, KafkaError) or isinstance(theirs, KafkaError):
        assert type(ours) is type(theirs), f"{shown}\nours: {ours}\nKafka: {theirs}"
        assert ours == theirs, f"{shown}\nours: {ours}\nKafka: {theirs}"
        return
    assert ours.dtype == np.int32
    assert ours.tolist() == theirs.tolist(), f"{shown}\nours: {ours.tolist()}\nKafka: {theirs.tolist()}"


def draw_from(entropy: JavaRandom, kind: str, argument: int) -> list[int]:
    """Draw once from ours, answering as the Java program does."""
    if kind == "n":
        return [entropy.next_int()]
    if kind == "b":
        return [entropy.next_int_bound(argument)]
    items = list(range(argument))
    entropy.shuffle(items)
    return items


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


def places(order: Sequence[str | None], keys: Sequence[str | None]) -> list[int]:
    """Return where each key of `order` stands among the distinct keys, as the Java program answers."""
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return [place[key] for key in order]


Drawn = tuple[int, int]
"""A seed and the number of a case."""


def areas(kafka: KafkaJvm) -> list[Area[Drawn]]:
    """Return an area for each algorithm that the release has."""
    return [_area(kafka, algorithm) for algorithm in algorithms_of(kafka.release)]


def _area(kafka: KafkaJvm, algorithm: str) -> Area[Drawn]:
    def difference(drawn: Drawn) -> str | None:
        try:
            check(kafka, algorithm, seed=drawn[0], case=drawn[1])
        except AssertionError as mismatch:
            return str(mismatch)
        return None

    return Area(name=algorithm, draw=lambda seed, number: (seed, number), difference=difference, smaller=_smaller)


def _smaller(drawn: Drawn) -> Iterator[Drawn]:
    """Yield cases whose inputs are smaller: of numbers in which inputs have not grown as far."""
    seed, number = drawn
    size = _size(number)
    for smaller_number in range(GROWING_CASE_COUNT):
        if _size(smaller_number) < size:
            yield seed, smaller_number


def _size(case: int) -> int:
    return LARGE_SIZE if case % LARGE_EVERY == LARGE_EVERY - 1 else 2 + min(case, GROWING_CASE_COUNT) // 50
