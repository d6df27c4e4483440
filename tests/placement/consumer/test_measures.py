"""The optimum is one, the figures are right, and every move has its reason."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from hypothesis import given, settings

from broker.entropy import SplitMix64
from broker.errors import UsageError
from placement.consumer import optimum, registry
from placement.consumer.assignment import GroupAssignment
from placement.consumer.client_range import RangeAssignor
from placement.consumer.group import Group, Member, Topic
from placement.consumer.measures import Measures, measure
from placement.consumer.moves import MoveReason, moves_of
from placement.consumer.optimum import held_table, keep_more, optimum_of
from placement.consumer.ragged import Ragged
from placement.consumer.random_assignor import RandomAssignor
from placement.consumer.registry import load_assignor
from placement.consumer.round_robin import RoundRobinAssignor
from placement.consumer.sticky.assignor import CooperativeStickyAssignor, StickyAssignor
from placement.consumer.strategies import groups
from placement.consumer.uniform.assignor import UniformAssignor
from tests.placement.consumer.groups import group, partitions


@settings(max_examples=60)
@given(groups(racks=False, equal=False))
def test_no_assignment_is_more_even_and_of_the_most_even_none_keeps_more(asked: Group) -> None:
    found = optimum_of(asked)
    assert found is not None
    assert (int((found.sizes**2).sum()), found.kept_count) == _best(asked)


@settings(max_examples=30)
@given(groups(racks=False, equal=True))
def test_an_assignment_with_the_best_sizes_never_keeps_more_than_can_stay(asked: Group) -> None:
    best = optimum_of(asked)
    assert best is not None
    for assignor in (StickyAssignor(), RoundRobinAssignor()):
        figures = measure(assignor.assign(asked, SplitMix64(0)), best)
        assert figures.score > figures.best_score or figures.kept_count <= figures.most_kept_count


def _best(asked: Group) -> tuple[int, int]:
    """Go over all ways to share each topic out; of those that lead to the same sizes, keep the one that keeps most."""
    subscribed = [set(row) for row in asked.subscribed.lists()]
    held = held_table(asked)
    most_kept = {(0,) * len(subscribed): 0}
    for topic, count in enumerate(asked.partition_counts.tolist()):
        readers = [member for member, own in enumerate(subscribed) if topic in own]
        shares = list(_shares(max(count, 0), len(readers))) if readers else []
        most_kept = _with_one_more_topic(most_kept, readers, shares, held[:, topic].tolist()) if shares else most_kept
    least = min(sum(size * size for size in sizes) for sizes in most_kept)
    return least, max(kept for sizes, kept in most_kept.items() if sum(size * size for size in sizes) == least)


def _with_one_more_topic(
    most_kept: dict[tuple[int, ...], int], readers: list[int], shares: list[tuple[int, ...]], held: list[int]
) -> dict[tuple[int, ...], int]:
    grown: dict[tuple[int, ...], int] = {}
    for sizes, kept in most_kept.items():
        for share in shares:
            after = list(sizes)
            for member, units in zip(readers, share, strict=True):
                after[member] += units
            more = sum(min(units, held[member]) for member, units in zip(readers, share, strict=True))
            grown[tuple(after)] = max(grown.get(tuple(after), 0), kept + more)
    return grown


def _shares(units: int, reader_count: int) -> Iterator[tuple[int, ...]]:
    if reader_count == 1:
        yield (units,)
        return
    for first in range(units + 1):
        for rest in _shares(units - first, reader_count - 1):
            yield (first, *rest)


def test_the_optimum_of_the_nested_example_is_one_two_three() -> None:
    found = optimum_of(group({"t0": 1, "t1": 2, "t2": 3}, {"c0": "t0", "c1": "t0 t1", "c2": "t0 t1 t2"}))
    assert found is not None
    assert found.sizes.tolist() == [1, 2, 3]


def test_the_optimum_is_not_computed_for_tables_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimum, "TABLE_SIZE_MAX", 3)
    assert optimum_of(group({"t": 1, "u": 1}, {"a": "t", "b": "t u"})) is None
    assert optimum_of(group({"t": 1, "u": 1}, {"a": "t u", "b": "t u"})) is not None


def test_figures_stand_beside_the_best() -> None:
    asked = group({"t0": 3, "t1": 3}, {"c0": "t0 t1", "c1": "t0 t1"}, {"c0": "t0-0 t0-1 t0-2 t1-0", "c1": "t1-1"})
    best = optimum_of(asked)
    assert best is not None
    assert measure(RangeAssignor().assign(asked, SplitMix64(0)), best) == Measures(
        size_min=2,
        size_max=4,
        score=2,
        best_size_min=3,
        best_size_max=3,
        best_score=0,
        kept_count=3,
        most_kept_count=4,
        matched_count=0,
        racked_count=0,
    )


def test_partitions_read_within_the_rack_are_counted_where_racks_are_known() -> None:
    topic = Topic(name="t", partition_count=3, replica_racks=(("a",), ("b",), ()))
    asked = Group.of([Member(id="m", topics=("t",), rack="a")], [topic])
    best = optimum_of(asked)
    assert best is not None
    figures = measure(RangeAssignor().assign(asked, SplitMix64(0)), best)
    assert (figures.matched_count, figures.racked_count) == (1, 2)


def test_every_move_has_its_reason() -> None:
    asked = group({"t": 6, "u": 1}, {"a": "t", "b": "t"})
    held = {
        "a": partitions("t-0 t-4 u-0"),
        "b": partitions("t-1 t-4 gone-0"),
        "c": partitions("t-2"),
        "d": partitions("t-9"),
    }
    after = GroupAssignment(asked, Ragged.of([[0, 1, 2], [3, 4]]))
    assert [(str(move.partition), move.before, move.after, move.why) for move in moves_of(after, held)] == [
        ("gone-0", "b", None, MoveReason.GONE),
        ("t-1", "b", "a", MoveReason.CHOSEN),
        ("t-2", "c", "a", MoveReason.LEFT),
        ("t-3", None, "b", MoveReason.NEW),
        ("t-9", "d", None, MoveReason.GONE),
        ("u-0", "a", None, MoveReason.NO_READER),
    ]


def test_disputed_unsubscribed_and_withheld_partitions_have_their_reasons_too() -> None:
    asked = group({"t": 2, "u": 1}, {"a": "t", "b": "t u", "c": "t"})
    held = {"a": partitions("t-0 u-0"), "b": partitions("t-0 t-1")}
    after = GroupAssignment(asked, Ragged.of([[], [2], [0]]))
    assert [(str(move.partition), move.after, move.why) for move in moves_of(after, held)] == [
        ("t-0", "c", MoveReason.DISPUTED),
        ("t-1", None, MoveReason.WITHHELD),
        ("u-0", "b", MoveReason.UNSUBSCRIBED),
    ]


def test_kafkas_assignors_go_by_kafkas_names_and_each_call_makes_a_new_one() -> None:
    assert load_assignor("roundrobin") == RoundRobinAssignor()
    assert load_assignor("sticky") == StickyAssignor()
    assert load_assignor("sticky") is not load_assignor("sticky")
    assert load_assignor("sticky", corrected=True) == StickyAssignor(corrected=True)
    corrected = CooperativeStickyAssignor(StickyAssignor(corrected=True))
    assert load_assignor("cooperative-sticky", corrected=True) == corrected
    assert load_assignor("uniform", corrected=True) == UniformAssignor()
    assert load_assignor("range", corrected=True) == RangeAssignor()


def test_packages_offer_assignors_but_not_under_kafkas_names(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint(name, f"placement.consumer.random_assignor:{made}", registry.ASSIGNOR_GROUP)
        for name, made in (("random", "RandomAssignor"), ("range", "RandomAssignor"))
    ]
    points.append(EntryPoint("odd", "builtins:object", registry.ASSIGNOR_GROUP))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    assert load_assignor("random") == RandomAssignor()
    assert load_assignor("range") == RangeAssignor()
    with pytest.raises(UsageError) as refusal:
        load_assignor("odd")
    assert str(refusal.value) == "assignor 'odd' has no method assign(group, entropy)"
    with pytest.raises(UsageError) as refusal:
        load_assignor("none")
    assert str(refusal.value) == (
        "assignor 'none' is not installed; there are cooperative-sticky, odd, random, range, roundrobin, server-range, "
        "sticky, uniform"
    )


def test_sizes_are_levelled_though_that_moves_what_was_held() -> None:
    found = optimum_of(group({"t": 2, "u": 0}, {"a": "t", "b": "t u"}, {"a": "t-0 t-1"}))
    assert found is not None
    assert (found.sizes.tolist(), found.kept_count) == ([1, 1], 1)


Rows = list[list[int]]


def kept_after(table: Rows, held: Rows, may_hold: Rows) -> tuple[int, Rows]:
    changed = np.array(table)
    keep_more(changed, np.array(held), np.array(may_hold, bool))
    return int(np.minimum(changed, held).sum()), changed.tolist()


def test_a_circle_may_give_up_one_that_was_held_for_two_that_were() -> None:
    # The last member gives its t0, which it held, and gets its t1 back; the first gets the t0 that it held.
    kept, table = kept_after([[0, 1], [1, 0], [1, 0]], [[1, 0], [0, 0], [1, 1]], [[1, 1], [1, 0], [1, 1]])
    assert (kept, table) == (2, [[1, 0], [1, 0], [0, 1]])


def test_no_circle_goes_through_a_member_that_may_not_hold_the_topic() -> None:
    # Five members with one unit each: in three circles out of reach more would stay than the one that is allowed.
    table = [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    held = [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [1, 0, 2, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]
    may_hold = [[0, 0, 1, 0, 1], [0, 1, 0, 1, 0], [1, 0, 1, 0, 0], [1, 1, 0, 0, 1], [1, 0, 0, 1, 1]]
    kept, changed = kept_after(table, held, may_hold)
    assert kept == 1
    assert not (np.array(changed) > np.array(may_hold)).any()
