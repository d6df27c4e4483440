"""The general sticky assignment on arrays agrees with the readable steps, and begins no passes that move nothing."""

from __future__ import annotations

import random

import attrs
import pytest
from hypothesis import assume, given, reject, settings

from broker.entropy import SplitMix64
from broker.errors import RefusedError
from placement.consumer.group import Group, Member, Topic
from placement.consumer.sticky import assignor as sticky
from placement.consumer.sticky import balance
from placement.consumer.sticky.assignor import CooperativeStickyAssignor, StickyAssignor
from placement.consumer.sticky.balance import Balancing, Start
from placement.consumer.sticky.claims import assigned_topics, settle
from placement.consumer.sticky.constrained import StickyAnswer
from placement.consumer.sticky.general import older_owners
from placement.consumer.sticky.general_kernel import fill_sound
from placement.consumer.sticky.movements import Movements
from placement.consumer.sticky.racks import StickyRacks, assigned_partitions
from placement.consumer.strategies import groups
from tests.placement.consumer.groups import answer, group, rows


def drawn(chance: random.Random, held: list[Member], topics: list[Topic], born: int) -> Group:
    """Return a group in which some members have left and some are new; a member may name a topic twice.

    `born` is part of the names of new members.
    """
    gone = chance.random() < 0.5
    members = [one for one in held if not gone or chance.random() < 0.8]
    for number in range(chance.randrange(3) if members else 3):
        names = [one.name for one in topics if chance.random() < chance.choice((0.2, 0.5, 0.9))]
        members.append(Member(id=f"m{born}-{number}", topics=(*names, *names[: chance.randrange(4) == 0])))
    if chance.random() < 0.3:
        place = chance.randrange(len(members))
        names = [one.name for one in topics if chance.random() < 0.5]
        members[place] = attrs.evolve(members[place], topics=tuple(names))
    return Group.of(members, topics)


def both_starts(asked: Group) -> tuple[Start, Start, bool]:
    """Return what the readable and the compiled steps give, and whether the latter say that nothing can move."""
    claims = settle(asked, corrected=False)
    every = assigned_partitions(asked, assigned_topics(asked))
    racks = StickyRacks.of(asked, every)
    filled = fill_sound(asked, claims.held)
    return Start.readable(asked, claims, every.tolist(), racks), Start.of(asked, racks, filled), filled.still


def check_agreement(asked: Group) -> bool:
    """Check that both ways agree; return whether nothing can move."""
    slow, fast, still = both_starts(asked)
    assert fast.holdings.lists == slow.holdings.lists
    assert fast.holdings.sizes == slow.holdings.sizes
    assert (fast.ordered, fast.free) == (slow.ordered, slow.free)
    assert (fast.revoked, fast.initial) == (slow.revoked, slow.initial)
    slow.holdings.set_aside()
    older = older_owners(asked, int(asked.generations.max()), corrected=False) if still else {}
    passes = Balancing(slow.holdings, older, balance._unsound(asked, older), Movements(asked))
    assert passes.passes(balance._shared(slow.holdings, slow.ordered)) is not still
    return still


@pytest.mark.parametrize("case", range(10))
def test_the_compiled_steps_give_what_the_readable_ones_give_over_several_lives(case: int) -> None:
    chance = random.Random(f"general/{case}")
    topics = [
        Topic(name=f"t{number}", partition_count=chance.choice((0, 1, 2, 5, 9, 30))) for number in range(case % 9 + 2)
    ]
    held: list[Member] = []
    for generation in range(8):
        asked = drawn(chance, held, topics, generation)
        check_agreement(asked)
        assigned = StickyAssignor().assign(asked, SplitMix64(0))
        held = [
            Member(
                id=member,
                topics=tuple(asked.topics[topic] for topic in row),
                owned=assigned.of(member),
                generation=chance.choice((generation + 1, generation + 1, generation)),
            )
            for member, row in zip(asked.members, asked.subscribed.lists(), strict=True)
        ]


any_claims = groups(equal=False, racks=False, sound=False)


@settings(max_examples=15)
@given(any_claims)
def test_the_compiled_steps_agree_on_any_claims_to_partitions_that_exist(asked: Group) -> None:
    assume(not asked.phantom_count)
    check_agreement(asked)


@pytest.mark.deep
@given(any_claims)
def test_the_compiled_steps_agree_on_many_claims_to_partitions_that_exist(asked: Group) -> None:
    assume(not asked.phantom_count)
    check_agreement(asked)


def test_both_kinds_of_groups_are_met() -> None:
    assert check_agreement(group({"t": 4, "u": 2}, {"a": "t", "b": "t u"}))
    assert not check_agreement(group({"t": 4, "u": 2}, {"a": "t", "b": "t u"}, {"b": "t-0 t-1 t-2"}))


def test_a_group_in_which_nothing_can_move_begins_no_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance, "Start", None)
    asked = group({"t": 4, "u": 2}, {"a": "t", "b": "t u"})
    assert rows(StickyAssignor().assign(asked, SplitMix64(0))) == [[0, 1, 2], [4, 5, 3]]


@given(groups(sound=False))
def test_what_cooperative_withholds_is_found_on_arrays_as_in_maps(asked: Group) -> None:
    try:
        given_rows = StickyAssignor().assign(asked, SplitMix64(0)).rows
    except RefusedError:
        reject()
    expected = StickyAnswer.of(given_rows, sticky._transfers(asked, given_rows))
    found = sticky._withholding(asked, given_rows)
    assert expected.withheld is not None
    assert found.withheld is not None
    assert found.withheld.tolist() == expected.withheld.tolist()


def test_a_partition_goes_to_its_new_member_after_its_former_one_has_let_go() -> None:
    asked = group({"t": 4, "u": 1}, {"a": "t", "b": "t u"}, {"a": "t-0 t-1 t-2 t-3"})
    assert answer(CooperativeStickyAssignor(), asked) == {"a": "t-1 t-2 t-3", "b": "u-0"}
