"""Fatal sets and copysets equal counting every set of brokers one by one."""

from __future__ import annotations

from itertools import combinations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster import ClusterView, PartitionTable, TopicView
from broker.errors import UsageError
from broker.ids import BrokerId
from placement.outages.copysets import copysets, copysets_table
from placement.outages.fatal import fatal_sets, fatal_table
from placement.outages.lost import outage
from tests.placement.outages.views import FEW, Small, clusters


def of_rows(rows: list[list[int]], **given: object) -> ClusterView:
    width = max(map(len, rows))
    table = PartitionTable(
        topic_index=[0] * len(rows),
        partition_ids=list(range(len(rows))),
        replicas=[[*row, *[-1] * (width - len(row))] for row in rows],
        **given,
    )
    return ClusterView.build(name="n", source="s", format="f", partitions=table, topics=[TopicView("t")])


def at_risk(view: ClusterView, lost: tuple[BrokerId, ...]) -> int:
    return outage(view, lost).counts.at_risk_count


@FEW
@given(clusters())
def test_fatal_sets_of_drawn_clusters_are_counted_exactly(small: Small) -> None:
    check_against_every_set(small.view())


@FEW
@given(
    st.lists(
        st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True).filter(
            lambda row: len(row) > 1 or row[0] == 7
        ),
        min_size=1,
        max_size=25,
    )
)
def test_fatal_sets_of_many_pairs_and_triples_are_counted_exactly(rows: list[list[int]]) -> None:
    check_against_every_set(of_rows(rows, size_bytes=list(range(len(rows)))))


def check_against_every_set(view: ClusterView) -> None:
    found = fatal_sets(view, size_max=3)
    live = [broker.id for broker in view.brokers if broker.is_active]
    now = at_risk(view, ())
    minimal: list[frozenset[BrokerId]] = []
    for entry in found.sizes:
        every = list(combinations(live, entry.size))
        fatal = [lost for lost in every if at_risk(view, lost) > now]
        new = [frozenset(lost) for lost in fatal if not any(one <= set(lost) for one in minimal)]
        assert (entry.set_count, entry.fatal_count, entry.minimal_count) == (len(every), len(fatal), len(new))
        assert entry.loss_probability == (len(fatal) / len(every) if every else None)
        minimal += new
    listed = [frozenset(each for each in row if each >= 0) for row in found.brokers.tolist()]
    assert sorted(map(sorted, listed)) == sorted(map(sorted, minimal))
    for lost, count, size in zip(listed, found.partition_count.tolist(), found.size_bytes.tolist(), strict=True):
        counts = outage(view, lost).counts
        assert count == counts.at_risk_count - now
        before = outage(view, ()).counts.at_risk_bytes
        assert (counts.at_risk_bytes, before) == (size + before, before)
    assert found.partition_count.tolist() == sorted(found.partition_count.tolist(), reverse=True)


def test_the_largest_factor_bounds_the_size_unless_it_is_given() -> None:
    view = of_rows([[1, 2], [3, 4]])
    assert [each.size for each in fatal_sets(view).sizes] == [1, 2]
    with pytest.raises(UsageError, match="fatal sets of up to 4 brokers are asked; allowed are 1 to 3"):
        fatal_sets(view, size_max=4)


def test_the_table_lists_minimal_sets() -> None:
    table = fatal_table(fatal_sets(of_rows([[2, 1], [1, 2], [3, 4, 5]])))
    assert table.to_pylist() == [
        {"broker_ids": [1, 2], "broker_count": 2, "partition_count": 2, "size_bytes": None},
        {"broker_ids": [3, 4, 5], "broker_count": 3, "partition_count": 1, "size_bytes": None},
    ]


@FEW
@given(st.lists(st.lists(st.integers(0, 80), min_size=1, max_size=4, unique=True), min_size=1, max_size=30))
def test_copysets_and_scatter_widths_are_those_of_sets(rows: list[list[int]]) -> None:
    found = copysets(of_rows(rows))
    assert [each.replication_factor for each in found] == sorted({len(row) for row in rows})
    for each in found:
        sets = {frozenset(row) for row in rows if len(row) == each.replication_factor}
        brokers = {broker for one in sets for broker in one}
        widths = [len({other for one in sets if broker in one for other in one} - {broker}) for broker in brokers]
        assert each.copyset_count == len(sets)
        assert each.broker_count == len(brokers)
        assert (each.scatter_width_min, each.scatter_width_max) == (min(widths), max(widths))
        assert each.scatter_width_mean == pytest.approx(sum(widths) / len(widths))
        assert each.copyset_count_min is not None
        assert each.copyset_count_least_scatter <= each.copyset_count_min <= each.copyset_count
    assert copysets_table(found).num_rows == len(found)


def test_disjoint_groups_are_the_fewest_copysets() -> None:
    (found,) = copysets(of_rows([[1, 2, 3], [3, 1, 2], [4, 5, 6]]))
    assert attrs.astuple(found) == (3, 3, 6, 2, 2, 2, 2, 2.0, 2)
