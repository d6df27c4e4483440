"""The sticky assignors: fast and readable ways agree, Kafka's defects are there and can be switched off."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from broker.entropy import SplitMix64
from placement.consumer.assignment import ConsumerAssignor
from placement.consumer.errors import EndlessBalancingError, IllegalStateError, NullPointerError
from placement.consumer.group import Group, Member, Topic
from placement.consumer.invariants import check_assignment
from placement.consumer.sticky import assignor as sticky
from placement.consumer.sticky import balance as sticky_balance
from placement.consumer.sticky.assignor import CooperativeStickyAssignor, StickyAssignor, assign_by_quota
from placement.consumer.sticky.claims import all_equal, assigned_topics, settle
from placement.consumer.sticky.constrained import assign_constrained
from placement.consumer.sticky.general import older_owners
from placement.consumer.sticky.racks import StickyRacks, assigned_partitions
from placement.consumer.strategies import check_assignor, groups
from tests.placement.consumer.groups import answer, group, partitions, rows


@settings(max_examples=40)
@given(groups(racks=False, equal=True))
def test_quotas_in_arrays_give_what_the_lists_give(asked: Group) -> None:
    claims = settle(asked, corrected=False)
    every = assigned_partitions(asked, assigned_topics(asked))
    fast = assign_by_quota(asked, claims.held, every)
    slow = assign_constrained(asked, claims, every.tolist(), StickyRacks.of(asked, every))
    assert list(fast.rows.lists()) == list(slow.rows.lists())
    assert fast.withheld is not None
    assert slow.withheld is not None
    assert fast.withheld.tolist() == slow.withheld.tolist()


@settings(max_examples=30)
@given(groups(equal=False))
def test_asking_at_each_step_whether_all_is_balanced_changes_nothing_for_sound_claims(asked: Group) -> None:
    assume(not all_equal(asked, corrected=False))
    every = assigned_partitions(asked, assigned_topics(asked))
    claims, older = settle(asked, corrected=True), older_owners(asked, 1, corrected=True)
    racks = StickyRacks.of(asked, every)
    fast = sticky_balance.assign_general(asked, claims, every, racks, older)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sticky_balance, "_unsound", lambda *_: True)
        slow = sticky_balance.assign_general(asked, claims, every, racks, older)
    assert list(fast.lists()) == list(slow.lists())


@settings(max_examples=30)
@given(groups(sound=False))
def test_whatever_is_claimed_the_corrected_assignors_keep_all_rules(asked: Group) -> None:
    answered = StickyAssignor(corrected=True).assign(asked, SplitMix64(0))
    assert check_assignment(answered, balanced=True) == []


@settings(max_examples=30)
@given(groups(sound=False), st.sampled_from([StickyAssignor, CooperativeStickyAssignor]))
def test_whatever_is_claimed_kafkas_answer_is_one_or_a_refusal(asked: Group, kind: type[StickyAssignor]) -> None:
    with contextlib.suppress(IllegalStateError, NullPointerError):
        assert len(rows(kind().assign(asked, SplitMix64(0)))) == len(asked.members)


@settings(max_examples=30)
@given(groups(racks=False))
def test_the_second_cooperative_round_hands_out_all_and_takes_nothing_away(asked: Group) -> None:
    first = CooperativeStickyAssignor(StickyAssignor(corrected=True)).assign(asked, SplitMix64(0))
    assert check_assignment(first, withheld=True) == []
    members = [
        Member(
            id=member,
            topics=tuple(asked.topics[topic] for topic in topics),
            instance_id=asked.instance_ids[place],
            owned=first.of(member),
            generation=2,
        )
        for place, (member, topics) in enumerate(zip(asked.members, asked.subscribed.lists(), strict=True))
    ]
    counts = zip(asked.topics, asked.partition_counts.tolist(), strict=True)
    second = Group.of(members, [Topic(name=name, partition_count=count) for name, count in counts])
    after = CooperativeStickyAssignor(StickyAssignor(corrected=True)).assign(second, SplitMix64(0))
    assert check_assignment(after) == []
    assert all(set(mine) <= set(whole) for mine, whole in zip(rows(first), rows(after), strict=True))


def test_the_corrected_sticky_assignor_is_balanced_and_sound() -> None:
    check_assignor(lambda: StickyAssignor(corrected=True), balanced=True, example_count=50)


def test_a_member_without_topics_that_comes_first_is_passed_over_unless_corrected() -> None:
    asked = group({"t": 3}, {"a": "", "b": "t"})
    assert asked.member_hash_order.tolist() == [0, 1]
    assert answer(StickyAssignor(), asked) == {"a": "t-0 t-2", "b": "t-1"}
    assert answer(StickyAssignor(corrected=True), asked) == {"a": "", "b": "t-0 t-1 t-2"}


def test_an_older_owner_gets_a_partition_back_though_it_does_not_subscribe_unless_corrected() -> None:
    asked = group(
        {"t": 6, "u": 6},
        {"a": "t", "b": "u", "c": "t u"},
        {"a": "t-0 t-1 t-2 t-3 t-4 t-5", "b": "t-0"},
        {"a": 4, "b": 3, "c": 4},
    )
    strangers = [one.rule for one in check_assignment(StickyAssignor().assign(asked, SplitMix64(0)))]
    assert strangers == ["subscribed"]
    assert check_assignment(StickyAssignor(corrected=True).assign(asked, SplitMix64(0)), balanced=True) == []


def test_an_older_owner_that_was_set_aside_makes_kafka_throw_unless_corrected() -> None:
    subscriptions = {"c0-7nh8wP": "j2B", "client-1Q": "t", "consumer-2R": "t"}
    held = {"c0-7nh8wP": "t-3", "client-1Q": " ".join(f"t-{number}" for number in range(9))}
    asked = group({"t": 9, "j2B": 1}, subscriptions, held, {"c0-7nh8wP": 3, "client-1Q": 4, "consumer-2R": 4})
    with pytest.raises(NullPointerError) as thrown:
        StickyAssignor().assign(asked, SplitMix64(0))
    assert str(thrown.value) == (
        'Cannot invoke "java.util.List.size()" because the return value of "java.util.Map.get(Object)" is null'
    )
    assert check_assignment(StickyAssignor(corrected=True).assign(asked, SplitMix64(0)), balanced=True) == []


def test_a_claim_beyond_the_end_of_a_topic_makes_kafka_give_partitions_twice_unless_corrected() -> None:
    asked = group({"t": 3}, {"a": "t", "b": "t"}, {"a": "t-7", "b": "t-0"})
    broken = check_assignment(StickyAssignor().assign(asked, SplitMix64(0)))
    assert {one.rule for one in broken} >= {"existing"}
    assert check_assignment(StickyAssignor(corrected=True).assign(asked, SplitMix64(0)), balanced=True) == []


def test_partitions_claimed_by_two_in_one_generation_are_nobodys() -> None:
    asked = group({"t": 2}, {"a": "t", "b": "t"}, {"a": "t-0 t-1", "b": "t-0"})
    assert settle(asked, corrected=False).contested == {0}
    assert answer(CooperativeStickyAssignor(), asked) == {"a": "t-1", "b": ""}


def test_the_newer_of_two_claims_stands() -> None:
    asked = group({"t": 2}, {"a": "t", "b": "t"}, {"a": "t-0", "b": "t-0 t-1"}, {"a": 2, "b": 1})
    assert list(settle(asked, corrected=False).held.lists()) == [[0], [1]]


def test_the_highest_generation_ever_seen_is_remembered() -> None:
    assignor = StickyAssignor()
    assignor.assign(group({"t": 1}, {"a": "t"}, {}, {"a": 7}), SplitMix64(0))
    assignor.assign(group({"t": 1}, {"a": "t"}, {}, {"a": 3}), SplitMix64(0))
    assert assignor.max_generation == 7


def test_balancing_that_does_not_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sticky_balance.Balancing, "_one_pass", lambda *_: True)
    monkeypatch.setattr(sticky_balance, "PASS_COUNT_MAX", 5)
    with pytest.raises(EndlessBalancingError) as broken_off:
        StickyAssignor().assign(group({"t": 3, "u": 1}, {"a": "t", "b": "t u"}, {"b": "t-0 t-1 t-2"}), SplitMix64(0))
    assert str(broken_off.value) == "partitions still move after 5 passes"


def test_a_group_without_members_divides_by_zero_as_kafka_does() -> None:
    with pytest.raises(sticky.DivisionByZeroError) as thrown:
        StickyAssignor().assign(group({"t": 1}, {}), SplitMix64(0))
    assert (thrown.value.kafka_class, str(thrown.value)) == ("java.lang.ArithmeticException", "/ by zero")


def test_what_a_member_keeps_is_the_first_in_order_of_number_and_topic() -> None:
    held = {"a": "t-1 u-0 t-0 u-1", "b": ""}
    after = answer(StickyAssignor(), group({"t": 2, "u": 2}, {"a": "t u", "b": "t u"}, held))
    assert after == {"a": "t-0 u-0", "b": "t-1 u-1"}
    assert partitions("t-0 u-0")[1].topic == "u"


@pytest.mark.parametrize("assignor", [StickyAssignor, CooperativeStickyAssignor])
def test_topics_whose_partitions_collide_in_javas_hash_stay_with_subscribers(
    assignor: Callable[[], ConsumerAssignor],
) -> None:
    # What Kafka 4.3.1 answers; t11-1 and t21-0 have the same hash.
    asked = group(
        {"t11": 2, "t21": 2, "t32": 4, "t33": 5, "t41": 2},
        {"c2": "t11 t21", "c0": "t32 t21", "c1": "t41 t33 t32", "c6": "t11 t41"},
    )
    answered = answer(assignor(), asked)
    assert answered["c2"] == "t11-0 t21-0 t21-1"
    assert answered["c6"] == "t41-0 t41-1 t11-1"
    assert check_assignment(assignor().assign(asked, SplitMix64(0))) == []


def test_members_that_name_a_topic_twice_are_not_equal_to_each_other() -> None:
    # Kafka compares the length of a list with that of a set, and takes the algorithm for different subscriptions.
    asked = group({"BB": 1, "u": 1}, {"consumer-426": "BB BB u", "é": "BB BB u"})
    assert not all_equal(asked, corrected=False)
    assert all_equal(asked, corrected=True)
    assert all_equal(group({"BB": 1}, {"alone": "BB BB"}), corrected=False)
    # What Kafka 4.3.1 answers.
    assert answer(StickyAssignor(), asked) == {"consumer-426": "u-0", "é": "BB-0"}


def test_a_partition_goes_to_its_new_member_after_its_former_one_has_let_go() -> None:
    asked = group({"t": 4, "u": 1}, {"a": "t", "b": "t u"}, {"a": "t-0 t-1 t-2 t-3"})
    assert answer(CooperativeStickyAssignor(), asked) == {"a": "t-1 t-2 t-3", "b": "u-0"}
