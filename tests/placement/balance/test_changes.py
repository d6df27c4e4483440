"""Two dumps of one cluster tell what happened between them, and no more than they can prove.

The story is a real one: a cluster of two regions, west (brokers 1, 2) and east (3, 4), whose west region
is lost. Topics without an in-sync replica in the east get a leader there by unclean election only. The
rows are those of confluentinc/examples @2a6f6e1c, multiregion/docs/multiregion.rst (Apache-2.0).
"""

from __future__ import annotations

from typing import Any

import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.balance.changes import changes

Row = tuple[int, list[int], list[int], list[int]]  # Leader, replicas, in sync, offline.

SINGLE, SYNC, ASYNC, DEFAULT = "single-region", "multi-region-sync", "multi-region-async", "multi-region-default"
UNDER_MIN, UNDER_REPLICATED = "multi-region-async-op-under-min-isr", "multi-region-async-op-under-replicated"
OBSERVER = "multi-region-async-op-leader-is-observer"

BASELINE: dict[str, Row] = {
    SINGLE: (2, [2, 1], [2, 1], []),
    SYNC: (1, [1, 2, 3, 4], [1, 2, 3, 4], []),
    ASYNC: (2, [2, 1, 3, 4], [2, 1], []),
    UNDER_MIN: (2, [2, 1, 3, 4], [2, 1], []),
    UNDER_REPLICATED: (2, [2, 1, 3, 4], [2, 1], []),
    OBSERVER: (2, [2, 1, 3, 4], [2, 1], []),
    DEFAULT: (2, [2, 1, 3, 4], [2, 1], []),
}
BROKER_STOPPED: dict[str, Row] = {
    SINGLE: (2, [1, 2], [2], [1]),
    SYNC: (2, [1, 2, 3, 4], [2, 3, 4], [1]),
    ASYNC: (2, [1, 2, 4, 3], [2], [1]),
    UNDER_MIN: (2, [2, 1, 3, 4], [2, 4], [1]),
    UNDER_REPLICATED: (2, [2, 1, 3, 4], [2, 4], [1]),
    OBSERVER: (2, [2, 1, 3, 4], [2], [1]),
    DEFAULT: (2, [1, 2, 3, 4], [2], [1]),
}
REGION_STOPPED: dict[str, Row] = {
    SINGLE: (-1, [2, 1], [1], [2, 1]),
    SYNC: (3, [1, 2, 3, 4], [3, 4], [1, 2]),
    ASYNC: (-1, [2, 1, 3, 4], [1], [2, 1]),
    UNDER_MIN: (4, [2, 1, 4, 3], [4, 3], [2, 1]),
    UNDER_REPLICATED: (4, [1, 2, 3, 4], [4, 3], [1, 2]),
    OBSERVER: (-1, [1, 2, 4, 3], [2], [1, 2]),
    DEFAULT: (-1, [2, 1, 3, 4], [1], [2, 1]),
}
UNCLEAN: dict[str, Row] = {
    ASYNC: (3, [2, 1, 3, 4], [3, 4], [2, 1]),
    DEFAULT: (3, [2, 1, 3, 4], [3, 4], [2, 1]),
}
SWITCHED: dict[str, Row] = {ASYNC: (3, [3, 4, 2, 1], [3, 4], [2, 1])}
RESTORED: dict[str, Row] = {
    SINGLE: (2, [2, 1], [1, 2], []),
    SYNC: (1, [1, 2, 3, 4], [3, 4, 2, 1], []),
    ASYNC: (2, [2, 1, 3, 4], [2, 1], []),
    UNDER_MIN: (2, [2, 1, 3, 4], [1, 2], []),
    UNDER_REPLICATED: (2, [2, 1, 3, 4], [1, 2], []),
    OBSERVER: (2, [2, 1, 3, 4], [2, 1], []),
}


def padded(rows: list[list[int]]) -> list[list[int]]:
    width = max(map(len, rows), default=0)
    return [row + [-1] * (width - len(row)) for row in rows]


def view(moment: dict[str, Row], *, complete: bool = False, offline: bool = True, **columns: Any) -> ClusterView:
    rows = list(moment.values())
    return ClusterView(
        name="moment",
        source="inline",
        format="example",
        brokers=tuple(BrokerView(id=BrokerId(number)) for number in (1, 2, 3, 4)),
        topics=tuple(map(TopicView, moment)),
        partitions=PartitionTable(
            topic_index=range(len(rows)),
            partition_ids=[0] * len(rows),
            leader=[leader for leader, _, _, _ in rows],
            replicas=padded([replicas for _, replicas, _, _ in rows]),
            isr=padded([isr for _, _, isr, _ in rows]),
            offline=padded([out for _, _, _, out in rows]) if offline else None,
            **columns,
        ),
        partitions_complete=complete,
    )


def told(before: dict[str, Row], after: dict[str, Row]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for change in changes(view(before), view(after)):
        found.setdefault(change.topic, []).append(change.change)
    return found


def test_stopping_one_broker_of_the_west_moves_one_leader() -> None:
    found = told(BASELINE, BROKER_STOPPED)
    assert found[SYNC] == ["leader moved", "ISR shrunk"]
    assert found[SINGLE] == ["ISR shrunk", "replicas changed"]
    assert found[UNDER_MIN] == ["ISR changed"]
    assert {kind for kinds in found.values() for kind in kinds if "leader" in kind} == {"leader moved"}


def test_losing_the_west_leaves_four_topics_without_a_leader_and_elects_cleanly_elsewhere() -> None:
    found = told(BROKER_STOPPED, REGION_STOPPED)
    assert {topic for topic, kinds in found.items() if "leader lost" in kinds} == {SINGLE, ASYNC, OBSERVER, DEFAULT}
    assert {topic for topic, kinds in found.items() if "leader moved" in kinds} == {SYNC, UNDER_MIN, UNDER_REPLICATED}


def test_each_topic_led_from_the_east_afterwards_had_one_unclean_election() -> None:
    found = changes(view(REGION_STOPPED), view(UNCLEAN))
    unclean = [(change.topic, change.partition, change.detail) for change in found if change.change.startswith("unc")]
    detail = "no leader, then leader 3; broker 3 was not in sync before, but 1"
    assert unclean == [(ASYNC, 0, detail), (DEFAULT, 0, detail)]
    assert told(REGION_STOPPED, UNCLEAN) == {
        ASYNC: ["unclean election", "ISR changed"],
        DEFAULT: ["unclean election", "ISR changed"],
    }


def test_switching_the_placement_only_changes_the_replicas() -> None:
    assert told(UNCLEAN, SWITCHED) == {ASYNC: ["replicas changed"]}


def test_restoring_the_region_elects_nobody_uncleanly() -> None:
    for before in (REGION_STOPPED, UNCLEAN, SWITCHED):
        kinds = told(before, RESTORED)
        assert "unclean election" not in [kind for topic in kinds.values() for kind in topic], kinds
    assert told(SWITCHED, RESTORED)[ASYNC] == ["leader moved", "ISR changed", "replicas changed"]
    assert told(REGION_STOPPED, RESTORED)[OBSERVER][0] == "leader elected"


def one(leader: int, isr: list[int], offline: list[int] | None = None, **columns: Any) -> ClusterView:
    return view({"t": (leader, [1, 2, 3], isr, offline or [])}, offline=offline is not None, **columns)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (one(1, [1, 2]), one(2, [2]), "leader moved"),
        (one(1, [1]), one(3, [3]), "unclean election"),
        (one(1, [1]), one(3, [3], [1]), "unclean election"),
        (one(1, [1]), one(3, [3], [2]), "leader moved"),
        (one(1, [1]), one(3, [3, 1]), "leader moved"),
        (one(-1, [1]), one(3, [3], []), "unclean election"),
        (one(-1, [1]), one(1, [1]), "leader elected"),
        (one(-1, [1]), one(2, [1, 2]), "leader elected"),
        (one(-1, [], elr=[[2]]), one(2, [2]), "leader elected"),
        (one(-1, [], elr=[[1]]), one(2, [2]), "unclean election"),
        (one(2, [2]), one(-1, [2]), "leader lost"),
    ],
)
def test_a_new_leader_is_judged_by_who_was_and_is_in_sync(
    before: ClusterView, after: ClusterView, expected: str
) -> None:
    assert changes(before, after)[0].change == expected


def test_a_reassignment_to_other_brokers_is_no_unclean_election() -> None:
    # lone-2 of tests/real_data/kraft-4.3, from 5-broker-3-cordoned to 6-reassigned: the log has no unclean one.
    before = view({"lone": (3, [3], [3], [])}, offline=False)
    after = view({"lone": (2, [2, 1], [1, 2], [])}, offline=False)
    assert [change.change for change in changes(before, after)] == ["leader moved", "ISR changed", "replicas changed"]


def test_a_drain_of_one_broker_in_sync_is_no_unclean_election() -> None:
    before = view({"t": (1, [1, 2], [1], [])}, offline=False)
    after = view({"t": (2, [3, 2], [2, 3], [])}, offline=False)
    assert changes(before, after)[0].change == "leader moved"


def test_a_leader_that_one_dump_does_not_name_has_not_changed() -> None:
    assert changes(one(-2, [1]), one(1, [1])) == ()


def test_partitions_appear_and_go_only_against_complete_dumps() -> None:
    before, after = {SINGLE: BASELINE[SINGLE]}, {SYNC: BASELINE[SYNC]}
    assert changes(view(before), view(after)) == ()
    found = changes(view(before, complete=True), view(after, complete=True))
    assert [(change.topic, change.change) for change in found] == [
        (SYNC, "partition appeared"),
        (SINGLE, "partition gone"),
    ]


def test_equal_views_have_no_changes() -> None:
    assert changes(view(BASELINE), view(BASELINE)) == ()


def test_another_order_of_the_isr_is_no_change() -> None:
    assert changes(one(1, [1, 2]), one(1, [2, 1])) == ()
