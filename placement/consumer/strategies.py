"""Provide Hypothesis strategies for consumer groups, and check any assignor in one call: `check_assignor(MyAssignor)`.

Groups are small and lean towards what breaks assignors: members without topics, topics without partitions or metadata,
names that Java and Python order differently or that collide in Java's hash, static members, racks. With `sound`, claims
are such as an assignor made them. The search is derandomised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hypothesis import given, reject
from hypothesis import strategies as st

from broker.entropy import SplitMix64
from broker.errors import RefusedError
from broker.ids import INT64_MAX, PartitionId, TopicPartition
from placement.consumer.assignment import ConsumerAssignor
from placement.consumer.group import Group, Member, Topic
from placement.consumer.invariants import BrokenRule, check_assignment
from placement.strategies import searching

# "Aa" and "BB" have the same hash in Java; the emoji sorts before "\uffee" there and after it in Python.
NAMES: Final = ("a", "b", "B", "Aa", "BB", "10", "9", "\N{GRINNING FACE}", "\uffee")
RACKS: Final = ("r1", "r2", "r3")
COUNT_MAX: Final = 6
SEED_MAX: Final = INT64_MAX


class AssignorFailure(AssertionError):  # noqa: N818 - named like placement.strategies.PlacerFailure.
    """Report that an assignor broke an invariant on this group."""

    def __init__(self, group: Group, broken: tuple[BrokenRule, ...]) -> None:
        self.group = group
        self.broken = broken
        members = ", ".join(
            f"{member}:{{{', '.join(group.topics[topic] for topic in row)}}}"
            for member, row in zip(group.members, group.subscribed.lists(), strict=True)
        )
        counts = ", ".join(
            f"{name} of {count}" for name, count in zip(group.topics, group.partition_counts, strict=True)
        )
        rules = "; ".join(f"{one.rule}: {one.detail}" for one in broken)
        super().__init__(f"{rules}\nmembers {members}\ntopics {counts}")


@st.composite
def groups(draw: st.DrawFn, *, sound: bool = True, racks: bool = True, equal: bool | None = None) -> Group:
    """Draw a group; `equal` True draws equal subscriptions, False any subscriptions, None either kind."""
    racked = racks and draw(st.booleans())
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    topics = [draw(_topics(name, racked=racked)) for name in names]
    ids = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    same = draw(st.booleans()) if equal is None else equal
    everybody = draw(st.permutations(names))
    partitions = [TopicPartition(one.name, PartitionId(k)) for one in topics for k in range(one.partition_count)]
    holders = draw(st.lists(st.sampled_from([*ids, None]), min_size=len(partitions), max_size=len(partitions)))
    members = []
    for member in ids:
        held = [one for one, holder in zip(partitions, holders, strict=True) if holder == member]
        claimed = st.lists(
            st.builds(TopicPartition, st.sampled_from(names), st.integers(0, COUNT_MAX).map(PartitionId))
        )
        members.append(
            Member(
                id=member,
                topics=tuple(everybody if same else draw(st.lists(st.sampled_from(names), unique=True))),
                instance_id=draw(st.none() | st.sampled_from(["i1", "i2"])),
                rack=draw(st.none() | st.sampled_from(("", *RACKS))) if racked else None,
                owned=tuple(draw(st.permutations(held)) if sound else draw(claimed)),
                generation=1 if sound else draw(st.integers(-1, 3)),
            )
        )
    return Group.of(members, topics)


@st.composite
def _topics(draw: st.DrawFn, name: str, *, racked: bool) -> Topic:
    count = draw(st.integers(0, COUNT_MAX))
    rows = st.lists(st.lists(st.sampled_from(RACKS), max_size=2), min_size=count, max_size=count)
    racks = tuple(tuple(row) for row in draw(rows)) if racked else None
    return Topic(name=name, partition_count=count, replica_racks=racks)


def check_assignor(
    make: Callable[[], ConsumerAssignor], *, balanced: bool = False, withheld: bool = False, example_count: int = 200
) -> None:
    """Run a new assignor on each of many small groups; raise `AssignorFailure` with the smallest failing group.

    The same seed must give the same answer. The assignor may refuse groups with a RefusedError. `balanced` and
    `withheld` are those of `placement.consumer.invariants.check_assignment`.
    """

    @searching(example_count)
    @given(groups(), st.integers(0, SEED_MAX))
    def property_holds(group: Group, seed: int) -> None:
        try:
            answers = [make().assign(group, SplitMix64(seed)) for _ in range(2)]
        except RefusedError:
            reject()
        broken = check_assignment(answers[0], balanced=balanced, withheld=withheld)
        if list(answers[0].rows.lists()) != list(answers[1].rows.lists()):
            broken.append(BrokenRule("same-seed", "the same seed gave another assignment the second time"))
        if broken:
            raise AssignorFailure(group, tuple(broken))

    try:
        property_holds()
    except AssignorFailure as failure:
        # Raised anew: Hypothesis's own notes repeat the group in its words.
        raise AssignorFailure(failure.group, failure.broken) from None
