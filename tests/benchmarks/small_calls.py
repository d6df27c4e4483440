"""Measure small calls of every placer and assignor beside Kafka's own classes, in one run.

    python -m tests.benchmarks.small_calls [--rounds 15] [--only sticky] [--kafka 3.9] [--json]

What it measures: the CPU time of the calling thread for one call, after warm-up, on some tens to some thousands of
replicas, where the overhead of a call weighs most; with inputs on which slow paths were found: factor 80 on uneven
racks, groups of a hundred partitions, members of different subscriptions, and claims after a member has left or before
all but one have joined.

How: on each side the input is made before, in the form that the side reads. Rounds of the sides follow each other, so
that noise of the machine meets both; a round of an assignor is the median of five calls on each side, which shares out
what it costs to come back to a process, each on a group that nobody has asked yet. Medians of the rounds are shown. A
call is within the limit if it takes at most 1 ms plus five times Kafka's, and from 10,000 replicas on no longer than
Kafka's.

Left out: large calls; tests.benchmarks.placement and tests.benchmarks.assignors measure them.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from broker.cluster import BrokerView
from broker.entropy import JavaRandom, SplitMix64
from broker.errors import RefusedError
from broker.ids import BrokerId, PartitionId, TopicPartition
from broker.releases import NEWEST, Release
from placement.consumer.group import Group, Member, Topic
from placement.consumer.registry import KAFKAS, load_assignor
from placement.consumer.topic_ids import id_text
from placement.placers.classic import ClassicPlacer
from placement.placers.striped import StripedPlacer
from placement.spec import PlacementSpec, ReplicaPlacer
from tests.benchmarks.report import describe_machine, show
from tests.kafka.assignor_jvm import AssignorJvm
from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError
from tests.kafka.releases import WITH_ADMIN_UTILS

WARM_UP_ROUNDS: Final = 20  # With five calls a round, Java's compiler has settled after them.
LARGE_WARM_UP_ROUNDS: Final = 4
OVERHEAD_MS: Final = 1.0
RATIO_MAX: Final = 5.0
LARGE_REPLICA_COUNT: Final = 10_000
ASSIGNOR_REPEATS: Final = 5


@attrs.frozen
class Call:
    """One line of the table: its name, how many replicas or partitions are assigned, and both sides' CPU ns.

    `ours` makes a call on new objects, which is then timed; `repeat_count` is the number of calls in a round of either
    side.
    """

    name: str
    replica_count: int
    ours: Callable[[], Callable[[], object]]
    kafka_ns: Callable[[], int]
    repeat_count: int = 1


def brokers(rack_sizes: tuple[int, ...]) -> tuple[BrokerView, ...]:
    """Return brokers in racks of these sizes; one size means that no broker has a rack."""
    racks = [f"rack-{place}" for place, size in enumerate(rack_sizes) for _ in range(size)]
    return tuple(
        BrokerView(id=BrokerId(number), rack=rack if len(rack_sizes) > 1 else None) for number, rack in enumerate(racks)
    )


PLACEMENTS: Final = (
    ("5 x 3 on 6", (6,), 5, 3),
    ("5 x 3, 3 racks", (2, 2, 2), 5, 3),
    ("1 x 80, uneven racks", (60, 25, 14, 1), 1, 80),
    ("5 x 80, uneven racks", (60, 25, 14, 1), 5, 80),
    ("100 x 3, 3 racks", (10, 10, 10), 100, 3),
    ("100 x 20, uneven racks", (50, 30, 20), 100, 20),
    ("4,000 x 3, 3 racks", (10, 10, 10), 4_000, 3),
)
"""What is placed: name, sizes of racks, partitions and factor."""


def placer_calls(kafka: KafkaJvm, placers: tuple[str, ...]) -> Iterator[Call]:
    """Yield the calls of these placers."""
    makes: dict[str, ReplicaPlacer] = {"classic": ClassicPlacer(fixed_start_index=0), "striped": StripedPlacer()}
    for placer in placers:
        for name, rack_sizes, count, factor in PLACEMENTS:
            view = brokers(rack_sizes)
            spec = PlacementSpec(start_partition=0, partition_count=count, replication_factor=factor)
            ours = partial(partial, _place, makes[placer], spec, view)
            theirs = partial(kafka.cpu_ns, placer, view, partition_count=count, factor=factor)
            yield Call(f"{placer} {name}", count * factor, ours, theirs)


def _place(placer: ReplicaPlacer, spec: PlacementSpec, view: tuple[BrokerView, ...]) -> object:
    return placer.place(spec, view, JavaRandom(1))


GROUPS: Final = ((4, 4, 6), (10, 10, 10), (30, 10, 10), (20, 20, 50), (50, 100, 110))
"""Members, topics and partitions of each."""


def assignor_calls(kafka: AssignorJvm, assignors: list[str]) -> Iterator[Call]:
    """Yield the calls of these assignors: equal and different subscriptions, from nothing and after one has left."""
    for assignor in assignors:
        for member_count, topic_count, size in GROUPS:
            for equal in (True, False):
                first = drawn_group(member_count, topic_count, size, equal=equal)
                given = load_assignor(assignor, release=kafka.release).assign(first[0], SplitMix64(0))
                held = [
                    attrs.evolve(member, owned=given.of(member.id), generation=1)
                    for member in first[1][: member_count - 1]
                ]
                left = Group.of(held, first[2])
                words = f"{assignor} {member_count} members, {topic_count} x {size}, {'equal' if equal else 'mixed'}"
                groups = (
                    (words, first[0]),
                    (f"{words}, one left", left),
                    (f"{words}, all but one joined", joined(first)),
                )
                for name, group in groups:
                    ours = partial(_new_call, assignor, kafka.release, group)
                    yield Call(
                        name, topic_count * size, ours, partial(_kafka_ns, kafka, assignor, group), ASSIGNOR_REPEATS
                    )


def joined(drawn: tuple[Group, list[Member], list[Topic]]) -> Group:
    """Return the group in which the first member has all that it can, so that nearly all of it moves."""
    _, members, topics = drawn
    names = set(members[0].topics)
    owned = tuple(
        TopicPartition(topic.name, PartitionId(number))
        for topic in topics
        if topic.name in names
        for number in range(topic.partition_count)
    )
    return Group.of([attrs.evolve(members[0], owned=owned, generation=1), *members[1:]], topics)


def _new_call(assignor: str, release: Release, group: Group) -> Callable[[], object]:
    # A copy of a group has none of the columns that an earlier call has made from it.
    return partial(_assign, assignor, release, attrs.evolve(group))


def _assign(assignor: str, release: Release, group: Group) -> object:
    try:
        return load_assignor(assignor, release=release).assign(group, SplitMix64(0))
    except RefusedError as refusal:  # Kafka throws, too, which is an answer that takes time.
        return refusal


def _kafka_ns(kafka: AssignorJvm, assignor: str, group: Group) -> int:
    kafka.begin(assignor)
    return int(statistics.median(kafka.cpu_ns(group, ASSIGNOR_REPEATS)))


def drawn_group(
    member_count: int, topic_count: int, size: int, *, equal: bool
) -> tuple[Group, list[Member], list[Topic]]:
    """Return a group whose members subscribe to all topics or to half of them each."""
    chance = random.Random(f"{member_count}/{topic_count}/{size}")
    topics = [Topic(name=id_text(chance.randbytes(16)), partition_count=size) for _ in range(topic_count)]
    names = [topic.name for topic in topics]
    members = [
        Member(id=f"consumer-{number}", topics=tuple(names if equal else chance.sample(names, (topic_count + 1) // 2)))
        for number in range(member_count)
    ]
    return Group.of(members, topics), members, topics


def _timed(work: Callable[[], object]) -> int:
    begin = time.thread_time_ns()
    work()
    return time.thread_time_ns() - begin


def measured(call: Call, rounds: int) -> dict[str, object]:
    """Return one row: medians of both sides over `rounds` alternating calls, after the warm-up."""
    ours_ns, kafka_ns = [], []
    large = call.replica_count >= LARGE_REPLICA_COUNT
    for _ in range(LARGE_WARM_UP_ROUNDS if large else WARM_UP_ROUNDS):
        call.ours()()
        call.kafka_ns()
    for _ in range(rounds):
        ours_ns.append(statistics.median(_timed(call.ours()) for _ in range(call.repeat_count)))
        kafka_ns.append(call.kafka_ns())
    ours_ms, kafka_ms = statistics.median(ours_ns) / 1e6, statistics.median(kafka_ns) / 1e6
    limit_ms = kafka_ms if large else OVERHEAD_MS + RATIO_MAX * kafka_ms
    return {
        "call": call.name,
        "replicas": call.replica_count,
        "ours ms": round(ours_ms, 3),
        "Kafka ms": round(kafka_ms, 3),
        "times Kafka's": round(ours_ms / max(kafka_ms, 1e-6), 1),
        "within": ours_ms <= limit_ms,
    }


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.small_calls", description="Measure small calls beside Kafka's own classes."
    )
    names = ["classic", "striped", *sorted(KAFKAS)]
    parser.add_argument("--rounds", type=int, default=15, help="measured calls a line (default: %(default)s)")
    parser.add_argument("--only", choices=names, action="append", help="one placer or assignor instead of all")
    parser.add_argument("--kafka", type=Release, default=NEWEST, help="release of the assignors (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    options = parser.parse_args()
    chosen = options.only or names
    rows = []
    with ExitStack() as stack:
        build_directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            placers = stack.enter_context(KafkaJvm.start(build_directory, WITH_ADMIN_UTILS))
            assignors = stack.enter_context(AssignorJvm.start(build_directory, options.kafka))
        except KafkaUnavailableError as missing:
            print(f"Kafka's own classes cannot be run here: {missing}", file=sys.stderr)
            return 2
        calls = (
            *placer_calls(placers, tuple(name for name in ("classic", "striped") if name in chosen)),
            *assignor_calls(assignors, [name for name in sorted(KAFKAS) if name in chosen]),
        )
        rows = [measured(call, options.rounds) for call in calls]
    show("small calls: median CPU ms of one call", describe_machine("numpy", "numba"), rows, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
