"""The audits find what is wrong, and say nothing of what the dump does not show."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.clusters import Clusters
from broker.ids import BrokerId
from broker.liveness import Liveness
from placement.balance.audit import explain_states, partition_states, rack_audit, state_counts
from placement.balance.constraints import Violation
from placement.balance.definitions import STATES
from placement.strategies import views
from tests.oracles import audit as oracle


def view(replicas: list[list[int]], *, least: int | None = 2, complete: bool = True, **columns: Any) -> ClusterView:
    count = len(replicas)
    racks = {1: "a", 2: "a", 3: "b", 4: None}
    return ClusterView(
        name="demo",
        source="inline",
        format="example",
        brokers=tuple(BrokerView(id=BrokerId(number), rack=rack) for number, rack in racks.items()),
        topics=(TopicView("t", min_insync_replicas=least),),
        partitions=PartitionTable(
            topic_index=[0] * count, partition_ids=list(range(count)), replicas=replicas, **columns
        ),
        partitions_complete=complete,
    )


def rows(found: np.ndarray[Any, Any] | None) -> list[int] | None:
    return None if found is None else found.tolist()


# --- racks -----------------------------------------------------------------------------------------------------------


def test_nothing_is_judged_when_no_broker_has_a_rack() -> None:
    bare = view([[1, 2]]).with_racks([(BrokerId(number), None) for number in (1, 2, 3, 4)])
    found = rack_audit(bare)
    assert (found.rack_count, found.rack_broker_count_min, found.fewer_racks) == (0, None, None)
    assert not found.uneven


@settings(max_examples=30)
@given(views())
def test_rack_audit_is_that_of_a_plain_loop(drawn: ClusterView) -> None:
    found = rack_audit(drawn)
    assert rows(found.fewer_racks) == (oracle.fewer_racks(drawn) if drawn.racks else None)


# --- states ----------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(views(), st.none() | st.integers(1, 3))
def test_states_are_those_of_a_plain_loop(drawn: ClusterView, default: int | None) -> None:
    assume(drawn.partitions.leader is not None and drawn.partitions.count > 0)
    found = partition_states(drawn, min_insync_replicas=default)
    for name, expected in oracle.states(drawn, default).items():
        got = rows(getattr(found, name))
        assert got == expected or (got is None and "min_isr" in name and expected == [])


def test_a_state_whose_input_is_missing_is_none() -> None:
    shown = view([[1, 2]])
    counts = state_counts(Clusters.of_view(shown), partition_states(shown))
    assert counts == {name: [None] for name in list(STATES)[:6]}
    found = partition_states(view([[1, 2]], least=None, leader=[1], isr=[[1, -1]]))
    assert (found.under_min_isr, found.at_min_isr, rows(found.under_replicated)) == (None, None, [0])


def test_a_default_for_min_insync_replicas_judges_topics_that_do_not_show_it() -> None:
    found = partition_states(view([[1, 2]], least=None, leader=[1], isr=[[1, -1]]), min_insync_replicas=2)
    assert (rows(found.under_min_isr), rows(found.at_min_isr)) == ([0], [])


def test_a_topic_that_does_not_show_its_min_insync_replicas_is_not_judged_beside_one_that_does() -> None:
    shown = view([[1, 2], [1, 2]], leader=[-1, -1], isr=[[1, -1], [1, -1]])
    table = attrs.evolve(shown.partitions, topic_index=[0, 1])
    two = attrs.evolve(shown, topics=(*shown.topics, TopicView("u")), partitions=table)
    assert rows(partition_states(two).under_min_isr) == [0]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"leader": [1], "isr": [[1]]}, [0]),
        ({"leader": [1], "isr": [[1, 2]]}, []),
        ({"leader": [-1], "isr": [[3]]}, []),
        ({"leader": [1], "isr": [[1]], "elr": [[2]]}, []),
        ({"leader": [1], "isr": [[1]], "elr": [[4]]}, [0]),  # Broker 4 is fenced.
        ({"leader": [1], "isr": [[1]], "adding": [[2, 4]]}, []),
    ],
)
def test_a_sole_live_copy_is_one_broker_from_loss(columns: dict[str, Any], expected: list[int]) -> None:
    shown = view([[1, 2, 4]], **columns)
    stated = {BrokerId(4): Liveness.FENCED, BrokerId(2): Liveness.ALIVE}
    assert rows(partition_states(shown.with_stated(stated)).sole_copy) == expected


def test_a_leaderless_partition_can_be_at_min_isr_as_in_kafka() -> None:
    assert rows(partition_states(view([[1, 2]], least=1, leader=[-1], isr=[[1, -1]])).at_min_isr) == [0]


def test_a_row_that_does_not_name_its_leader_is_not_judged_by_leader() -> None:
    found = partition_states(view([[1, 2], [2, 1]], leader=[-2, 1], isr=[[1, 2], [1, 2]]))
    assert (rows(found.leaderless), rows(found.not_preferred_leader)) == ([], [1])


def test_replicas_being_added_are_not_missed_from_the_isr() -> None:
    adding = view([[1, 2, 3]], leader=[1], isr=[[1, 2, -1]], adding=[[3]])
    assert rows(partition_states(adding).under_replicated) == []
    assert rows(partition_states(attrs.evolve(adding, partitions=without_adding(adding))).under_replicated) == [0]


def without_adding(drawn: ClusterView) -> PartitionTable:
    return attrs.evolve(drawn.partitions, adding=None)


@pytest.mark.parametrize(
    ("isr", "expected"),
    [([[1, 2, -1]], []), ([[1, -1, -1]], [0]), ([[1, 3, -1]], [0]), ([[1, 2, 3]], [])],
    ids=["observers out", "a replica out", "an observer in its place", "all in"],
)
def test_observers_count_on_neither_side_of_under_replicated(isr: list[list[int]], expected: list[int]) -> None:
    observed = view([[1, 2, 3, 4]], leader=[1], isr=isr, observers=[[3, 4]])
    assert rows(partition_states(observed).under_replicated) == expected


def test_a_partial_dump_shows_what_it_lists_and_claims_nothing_of_the_rest() -> None:
    found = partition_states(view([[1, 2]], complete=False, leader=[-1], isr=[[1, -1]]))
    assert (rows(found.leaderless), found.not_preferred_leader, rows(found.under_replicated)) == ([0], None, [0])


def test_a_state_is_told_with_brokers_racks_and_reason() -> None:
    shown = view([[1, 4]], leader=[-1], isr=[[1, -1]])
    found = explain_states(shown, partition_states(shown))
    assert found[0] == Violation("leaderless", "t", 0, (1, 4), ("a", ""), "no leader; in sync 1; min.insync.replicas 2")
    assert [violation.constraint for violation in found] == ["leaderless", "under-min-isr", "under-replicated"]


def test_only_the_first_of_each_state_are_told() -> None:
    shown = view([[1], [2], [3]], leader=[-1, -1, -1])
    assert [violation.partition for violation in explain_states(shown, partition_states(shown), limit=2)] == [0, 1]
