"""Run our assignors and Kafka's own on random lives of groups; count the cases and shrink what differs.

What it decides: whether both answer each step of a life alike: client-side assignors with the same lists in the same
order, server-side ones with the same sets, or an exception of the same Java class with the same message.

Constraints: life k of an assignor is a function of (seed, assignor, k) and of the release alone; lives grow with k,
but for a large one now and then.

How: `tests.kafka.assignor_lives` draws the lives, of up to five steps. The group of the step that differs is made
smaller as long as both, asked anew, still differ: members, topics, partitions, subscriptions and claims are left out.

Example: compare(kafka, release, seed=1, case_count=1000) returns the cases and steps of each assignor, and what
differs.

Left out: a step that differs only after the steps before it is shown as it is, not made smaller.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from broker.entropy import SplitMix64
from broker.errors import RefusedError
from broker.releases import Release
from placement.consumer.assignment import ConsumerAssignor
from placement.consumer.group import Group, Member, Topic
from placement.consumer.registry import KAFKAS, load_assignor
from tests.kafka.assignor_jvm import ENDLESS, Answer, AssignorJvm
from tests.kafka.assignor_lives import Life
from tests.kafka.jvm import KafkaError

GROWING_CASE_COUNT: Final = 1000
LARGE_EVERY: Final = 50
LARGE_SIZE: Final = 40
STEP_COUNT_MAX: Final = 5
SHRINK_ROUND_COUNT_MAX: Final = 100
CLIENTS: Final = ("cooperative-sticky", "range", "roundrobin", "sticky")
ASSIGNORS: Final = tuple(sorted(KAFKAS))


@attrs.frozen
class Difference:
    """A group on which the two answers differ, made as small as could be."""

    assignor: str
    seed: int
    case: int
    step: int
    members: tuple[Member, ...]
    topics: tuple[Topic, ...]
    ours: Answer
    theirs: Answer

    def __str__(self) -> str:
        lines = (
            f"{self.assignor}, seed {self.seed}, case {self.case}, step {self.step}",
            *(f"  {topic}" for topic in self.topics),
            *(f"  {member}" for member in self.members),
            f"  ours   {self.ours}",
            f"  Kafka  {self.theirs}",
        )
        return "\n".join(lines)


@attrs.define
class Compared:
    """The number of lives and of their steps by assignor, and what differed in them."""

    case_counts: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(ASSIGNORS, 0))
    step_counts: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(ASSIGNORS, 0))
    differences: list[Difference] = attrs.field(factory=list)


def compare(
    kafka: AssignorJvm,
    release: Release,
    *,
    seed: int,
    case_count: int | None = None,
    minutes: float | None = None,
    difference_count_max: int = 10,
) -> Compared:
    """Run lives of all assignors in turn until `case_count` of each, or `minutes`, are over, or too much differs."""
    compared = Compared()
    end_s = None if minutes is None else time.monotonic() + 60 * minutes
    case = 0
    while case != case_count and (end_s is None or time.monotonic() < end_s):
        for assignor in ASSIGNORS:
            difference, step_count = compare_life(kafka, assignor, release, seed=seed, case=case)
            compared.case_counts[assignor] += 1
            compared.step_counts[assignor] += step_count
            if difference is not None:
                compared.differences.append(difference)
        if len(compared.differences) >= difference_count_max:
            break
        case += 1
    return compared


def compare_life(
    kafka: AssignorJvm, assignor: str, release: Release, *, seed: int, case: int
) -> tuple[Difference | None, int]:
    """Draw life number `case` of an assignor and ask both at each step; return what differs, and the number of steps.

    Ends at the first step at which Kafka throws or the two differ.
    """
    chance = random.Random(f"{seed}/{assignor}/{case}")
    size = LARGE_SIZE if case % LARGE_EVERY == LARGE_EVERY - 1 else 2 + min(case, GROWING_CASE_COUNT) // 60
    life = Life.begin(chance, size, served=assignor not in CLIENTS, announcing=assignor == "cooperative-sticky")
    ours = load_assignor(assignor, release=release)
    kafka.begin(assignor)
    step_count = 1 + chance.randrange(STEP_COUNT_MAX)
    for step in range(step_count):
        answers = both(ours, kafka, assignor, life.members, life.topics)
        if answers[0] != answers[1]:
            shown = Difference(assignor, seed, case, step, tuple(life.members), tuple(life.topics), *answers)
            return shrunk(shown, kafka, release), step + 1
        if not isinstance(answers[1], dict):
            return None, step + 1
        life.hold(answers[1])
        life.change()
    return None, step_count


def both(
    ours: ConsumerAssignor, kafka: AssignorJvm, assignor: str, members: Sequence[Member], topics: Sequence[Topic]
) -> tuple[Answer, Answer]:
    """Return our answer and Kafka's; those of the server's assignors, which are sets, are sorted."""
    group = Group.of(members, topics)
    theirs = kafka.assign(group)
    if isinstance(theirs, KafkaError) and theirs.java_class == ENDLESS:
        return theirs, theirs
    answer: Answer
    try:
        assignment = ours.assign(group, SplitMix64(0))
        named = () if assignment.silent else group.members
        answer = {name: [(one.topic, one.partition) for one in assignment.of(name)] for name in named}
    except RefusedError as refusal:
        answer = KafkaError(refusal.kafka_class, str(refusal))
    if assignor not in CLIENTS:
        return _sets(answer), _sets(theirs)
    return answer, theirs


def _sets(answer: Answer) -> Answer:
    # Kafka cannot give a partition twice within a set; a list that does so must show.
    return {member: sorted(rows) for member, rows in answer.items()} if isinstance(answer, dict) else answer


def shrunk(difference: Difference, kafka: AssignorJvm, release: Release) -> Difference:
    """Return a smaller group on which the two still differ, each asked anew; the same if they do not differ then."""
    for _ in range(SHRINK_ROUND_COUNT_MAX):
        for members, topics in _smaller(difference.members, difference.topics):
            kafka.begin(difference.assignor)
            ours = load_assignor(difference.assignor, release=release)
            answers = both(ours, kafka, difference.assignor, members, topics)
            if answers[0] != answers[1]:
                difference = attrs.evolve(
                    difference, members=members, topics=topics, ours=answers[0], theirs=answers[1]
                )
                break
        else:
            break
    return difference


def _smaller(
    members: tuple[Member, ...], topics: tuple[Topic, ...]
) -> Iterator[tuple[tuple[Member, ...], tuple[Topic, ...]]]:
    """Yield groups with one thing less."""
    for place in range(len(members)):
        yield members[:place] + members[place + 1 :], topics
    for place, topic in enumerate(topics):
        others = topics[:place] + topics[place + 1 :]
        yield tuple(_without(member, topic.name) for member in members), others
        if topic.partition_count:
            racks = None if topic.replica_racks is None else topic.replica_racks[:-1]
            less = attrs.evolve(topic, partition_count=topic.partition_count - 1, replica_racks=racks)
            yield members, (*topics[:place], less, *topics[place + 1 :])
        if topic.replica_racks is not None:
            yield members, (*topics[:place], attrs.evolve(topic, replica_racks=None), *topics[place + 1 :])
    for place, member in enumerate(members):
        for fewer in _smaller_member(member):
            yield (*members[:place], fewer, *members[place + 1 :]), topics


def _without(member: Member, topic: str) -> Member:
    named = tuple(name for name in member.topics if name != topic)
    return attrs.evolve(member, topics=named, owned=tuple(one for one in member.owned if one.topic != topic))


def _smaller_member(member: Member) -> Iterator[Member]:
    for place in range(len(member.topics)):
        yield attrs.evolve(member, topics=member.topics[:place] + member.topics[place + 1 :])
    for place in range(len(member.owned)):
        yield attrs.evolve(member, owned=member.owned[:place] + member.owned[place + 1 :])
    plain = attrs.evolve(member, instance_id=None, rack=None, subscription_generation=None)
    if plain != member:
        yield plain
