"""Outages in columns equal Kafka's rules partition by partition, for every set of lost brokers and order of fencing."""

from __future__ import annotations

from itertools import chain, combinations, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.ids import BrokerId
from placement.outages.lost import outage
from replication.rules.controller_events import fenced_together, swept, unfenced
from replication.rules.partition import PartitionState
from replication.rules.settings import PartitionSettings, needed_in_sync
from replication.rules.switches import CURRENT, without
from tests.placement.outages.views import IDS, Partition, Small, clusters


def state_of(partition: Partition) -> PartitionState:
    return PartitionState(replicas=partition.replicas, isr=partition.isr, leader=partition.leader, elr=partition.elr)


def settings_of(partition: Partition, small: Small) -> PartitionSettings:
    rules = CURRENT if small.with_elr else without(CURRENT, "elr")
    return PartitionSettings(rules=rules, min_isr=partition.min_isr, unclean_election=partition.unclean)


def subsets(ids: tuple[BrokerId, ...]) -> list[tuple[BrokerId, ...]]:
    return list(chain.from_iterable(combinations(ids, size) for size in range(len(ids) + 1)))


LOST = st.sampled_from(subsets(IDS))


def after(partition: Partition, small: Small, order: tuple[BrokerId, ...]) -> PartitionState:
    """The partition once the brokers are fenced in this order, and the sweep for unclean elections has passed."""
    its_settings = settings_of(partition, small)
    active = frozenset(IDS) - small.dead
    state = fenced_together(state_of(partition), order, active, its_settings)
    return swept(state, active - set(order), its_settings) or state


@settings(max_examples=150, deadline=None)
@given(clusters(), LOST)
def test_leaders_and_counts_are_those_of_the_rules(small: Small, lost: tuple[BrokerId, ...]) -> None:
    view = small.view()
    found = outage(view, lost)
    for row, partition in enumerate(small.partitions):
        for order in permutations([each for each in lost if each in partition.replicas]):
            state = after(partition, small, order)
            assert found.leader[row] == state.leader, (partition, order)
            live = [each for each in state.isr if each not in small.dead and each not in lost]
            assert found.isr_count[row] == len(live), (partition, order)
    states = [after(each, small, lost) for each in small.partitions]
    under = [
        not state.has_leader
        or len(state.isr) < needed_in_sync(each.min_isr, len(each.replicas), settings_of(each, small).rules)
        for state, each in zip(states, small.partitions, strict=True)
    ]
    assert found.counts.leaderless_count == sum(not state.has_leader for state in states)
    assert found.counts.under_min_isr_count == sum(under)


@settings(max_examples=150, deadline=None)
@given(clusters(), LOST)
def test_at_risk_are_those_that_no_clean_election_leads(small: Small, lost: tuple[BrokerId, ...]) -> None:
    view = small.view()
    expected = 0
    for partition in small.partitions:
        its_settings = settings_of(partition, small)
        clean = PartitionSettings(rules=its_settings.rules, min_isr=partition.min_isr)
        active = frozenset(IDS) - small.dead
        expected += not fenced_together(state_of(partition), lost, active, clean).has_leader
    assert outage(view, lost).counts.at_risk_count == expected


@settings(max_examples=150, deadline=None)
@given(clusters(), LOST)
def test_who_must_return_is_what_the_rules_ask_for_in_every_order(small: Small, lost: tuple[BrokerId, ...]) -> None:
    view = small.view()
    found = outage(view, lost).coming_back
    for place, row in enumerate(found.rows.tolist()):
        partition = small.partitions[row]
        matrix = found.brokers_with_elr if small.with_elr else found.brokers
        needed = found.needed_count_with_elr if small.with_elr else found.needed_count
        brokers = tuple(BrokerId(each) for each in matrix[place].tolist() if each >= 0)
        leads = {
            subset: [leads_again(partition, small, order, subset) for order in permutations(lost)]
            for subset in subsets(brokers)
        }
        certain = min(len(subset) for subset in leads if all(leads[subset]))
        assert needed[place] == certain, (partition, lost)
        assert all(all(leads[subset]) for subset in leads if len(subset) >= certain), (partition, lost)
        # Each of them is the one in some order, so none is listed in vain; and no other broker does.
        assert all(any(leads[each,]) for each in brokers), (partition, lost)
        others = tuple(each for each in IDS if each not in brokers)
        assert not any(leads_again(partition, small, order, others) for order in permutations(lost))


def leads_again(
    partition: Partition, small: Small, order: tuple[BrokerId, ...], returning: tuple[BrokerId, ...]
) -> bool:
    """Whether the partition is led again, without an unclean election, once these of all dead brokers are unfenced."""
    its_settings = settings_of(partition, small)
    clean = PartitionSettings(rules=its_settings.rules, min_isr=partition.min_isr)
    active = frozenset(IDS) - small.dead
    state = fenced_together(state_of(partition), order, active, clean)
    active -= set(order)
    for broker in returning:
        if broker not in active:
            state = unfenced(state, broker, active, clean) or state
            active |= {broker}
    return state.has_leader
