"""Two views of one cluster: topics, brokers, settings, and which broker gained or lost what."""

from __future__ import annotations

import random
from typing import Any

import attrs
import numpy as np
import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, SettingsShown, TopicView
from broker.errors import UsageError
from broker.ids import BrokerId
from placement.balance.comparison import Comparison, compare
from placement.planning.completion import completed_view
from tests.placement.planning.cases import lists, padded, random_plan, random_view


def view_of(
    topics: dict[str, list[list[int]]],
    *,
    racks: str = "abcabc",
    settings: dict[str, dict[str, str]] | None = None,
    shown: SettingsShown = SettingsShown.EFFECTIVE,
) -> ClusterView:
    rows = [(index, number, row) for index, rows in enumerate(topics.values()) for number, row in enumerate(rows)]
    return ClusterView.build(
        name="prod",
        source="inline",
        format="test",
        brokers=[BrokerView(id=BrokerId(each), rack=rack) for each, rack in enumerate(racks, start=1)],
        topics=tuple(
            TopicView(
                name,
                partition_count=len(rows),
                configs=tuple((settings or {}).get(name, {}).items()),
                topic_id=f"id-{name}",
            )
            for name, rows in topics.items()
        ),
        settings_shown=shown,
        partitions=PartitionTable(
            topic_index=[index for index, _, _ in rows],
            partition_ids=[number for _, number, _ in rows],
            replicas=padded([row for _, _, row in rows]),
            leader=[row[0] for _, _, row in rows],
            isr=padded([row for _, _, row in rows]),
            size_bytes=[10] * len(rows),
        ),
    )


def topics_of(found: Comparison) -> list[tuple[str, str, str]]:
    return [(each.subject, each.change, each.detail) for each in found.topics]


def test_topics_that_came_went_grew_or_changed_are_named() -> None:
    before = view_of(
        {"gone": [[1]], "grown": [[1, 2]], "kept": [[1, 2]], "made": [[2]]}, settings={"kept": {"retention.ms": "1"}}
    )
    after = view_of(
        {"grown": [[1, 2], [2, 3]], "kept": [[1, 2, 3]], "made": [[2]], "new": [[3]]},
        settings={"kept": {"retention.ms": "2", "cleanup.policy": "compact"}},
    )
    topics = tuple(attrs.evolve(each, topic_id="other") if each.name == "made" else each for each in after.topics)
    found = compare(before, attrs.evolve(after, topics=topics))
    assert topics_of(found) == [
        ("gone", "topic deleted", "1 partition"),
        ("grown", "partitions added", "1 partition, then 2"),
        ("kept", "replication factor changed", "2 replicas, then 3 replicas"),
        ("kept", "setting changed", "cleanup.policy (not set), then compact"),
        ("kept", "setting changed", "retention.ms 1, then 2"),
        ("made", "topic deleted and created again", "id id-made, then other"),
        ("new", "topic created", "1 partition"),
    ]
    assert [attrs.astuple(each) for each in found.sizes][:2] == [("gone", 1, None, 10, None), ("grown", 1, 2, 20, 40)]


def test_partitions_of_a_topic_created_again_are_others() -> None:
    before, after = view_of({"kept": [[1, 2]], "made": [[1, 2]]}), view_of({"kept": [[1, 2]], "made": [[2, 3], [3, 1]]})
    topics = tuple(attrs.evolve(each, topic_id="other") if each.name == "made" else each for each in after.topics)
    found = compare(before, attrs.evolve(after, topics=topics))
    assert topics_of(found) == [("made", "topic deleted and created again", "id id-made, then other")]
    assert [(each.topic, each.partition, each.change) for each in found.partitions] == [
        ("made", 0, "partition gone"),
        ("made", 0, "partition appeared"),
        ("made", 1, "partition appeared"),
    ]
    assert found.common_partition_count == 1
    assert found.turnover.replicas_gained is not None
    assert not found.turnover.replicas_gained.any()
    # Without an id in one of the dumps nothing says that the topic is another.
    unnamed = tuple(attrs.evolve(each, topic_id=None) for each in after.topics)
    assert compare(before, attrs.evolve(after, topics=unnamed)).common_partition_count == 2


def one_topic(kind: SettingsShown, least: int | None, **configs: str) -> ClusterView:
    """Return a view of one topic whose min.insync.replicas is known apart from the settings that it shows."""
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    view = view_of({"t": [[1, 2]]}, settings={"t": settings}, shown=kind)
    return attrs.evolve(view, topics=(attrs.evolve(view.topics[0], min_insync_replicas=least),))


def settings_of(before: ClusterView, after: ClusterView) -> list[str]:
    found = compare(before, after).topics
    assert {(each.subject, each.change) for each in found} <= {("t", "setting changed")}
    return [each.detail for each in found]


def test_min_insync_replicas_alone_is_compared_where_a_dump_shows_no_settings() -> None:
    none, effective = SettingsShown.NONE, SettingsShown.EFFECTIVE
    changed = ["min.insync.replicas 1, then 2"]
    assert settings_of(one_topic(none, 1), one_topic(none, 2)) == changed
    assert settings_of(one_topic(effective, 1, retention_ms="1"), one_topic(none, 2)) == changed
    assert settings_of(one_topic(none, 2), one_topic(effective, 2, retention_ms="1")) == []
    assert settings_of(one_topic(none, None), one_topic(none, 2)) == []  # Not said is not "not set".
    # Where both show settings, those alone are compared.
    shown = one_topic(effective, 1, retention_ms="1"), one_topic(effective, 2, retention_ms="1")
    assert settings_of(*shown) == []


def test_of_own_and_effective_settings_the_own_ones_are_compared() -> None:
    """kafka-topics prints what the brokers' files set too; the metadata log has a topic's own settings."""
    own = one_topic(SettingsShown.OWN, 1, retention_ms="1", cleanup_policy="compact")
    effective = one_topic(SettingsShown.EFFECTIVE, 2, retention_ms="1", segment_bytes="10", min_insync_replicas="2")
    gone = "cleanup.policy compact, then (not set)"
    assert settings_of(own, effective) == [gone]
    assert settings_of(effective, own) == ["cleanup.policy (not set), then compact"]
    nothing = one_topic(SettingsShown.OWN, 1)
    assert settings_of(own, nothing) == [gone, "retention.ms 1, then (not set)"]


def test_a_topic_without_a_topic_line_shows_no_settings() -> None:
    whole = one_topic(SettingsShown.EFFECTIVE, None, retention_ms="1")
    part = one_topic(SettingsShown.EFFECTIVE, None)
    assert settings_of(whole, part) == ["retention.ms 1, then (not set)"]
    unsaid = attrs.evolve(part, topics=(attrs.evolve(part.topics[0], partition_count=None),))
    assert settings_of(whole, unsaid) == []


def test_brokers_that_came_went_moved_or_were_fenced_are_named() -> None:
    before = view_of({"t": [[1, 2]]}, racks="abc")
    after = view_of({"t": [[1, 2]]}, racks="acba")
    fenced = tuple(attrs.evolve(each, fenced=each.id == 1) for each in after.brokers)
    found = compare(before, attrs.evolve(after, brokers=fenced))
    assert [(each.subject, each.change, each.detail) for each in found.brokers] == [
        ("1", "broker fenced", ""),
        ("2", "rack changed", "rack b, then c"),
        ("3", "rack changed", "rack c, then b"),
        ("4", "broker new", ""),
    ]
    assert [each.change for each in compare(after, before).brokers][-1] == "broker gone"


@pytest.mark.parametrize(
    ("flag", "came", "went"),
    [
        ("fenced", "broker fenced", "broker unfenced"),
        ("cordoned", "broker cordoned", "broker uncordoned"),
        ("in_controlled_shutdown", "broker in controlled shutdown", "broker no longer in controlled shutdown"),
    ],
)
def test_a_flag_that_came_or_went_is_named(flag: str, came: str, went: str) -> None:
    view = view_of({"t": [[1, 2]]})
    changed: dict[str, Any] = {flag: True}
    first, second, *others = view.brokers
    other = attrs.evolve(view, brokers=(first, attrs.evolve(second, **changed), *others))
    for one, two, change in ((view, other, came), (other, view, went)):
        assert [(each.subject, each.change) for each in compare(one, two).brokers] == [("2", change)]


@pytest.mark.parametrize("seed", range(15))
def test_what_brokers_gained_and_lost_is_what_sets_say_partition_by_partition(seed: int) -> None:
    chance = random.Random(seed)
    before = random_view(chance)
    after = completed_view(random_plan(chance, before))
    order = np.array(chance.sample(range(after.partitions.count), after.partitions.count))
    shuffled = {
        each.name: column[order]
        for each in attrs.fields(PartitionTable)
        if (column := getattr(after.partitions, each.name)) is not None
    }
    found = compare(before, attrs.evolve(after, partitions=PartitionTable(**shuffled))).turnover
    count = {int(each): [0] * 6 for each in before.broker_ids}
    one, other = before.partitions, after.partitions
    assert one.leader is not None
    assert other.leader is not None
    assert one.isr is not None
    assert other.isr is not None
    for row in range(one.count):
        first, last = int(one.leader[row]), int(other.leader[row])
        if first != last:
            if last >= 0:
                count[last][0] += 1
            count[first][1] += 1
        for place, (now, then) in enumerate(((one.isr, other.isr), (one.replicas, other.replicas)), start=1):
            held, holds = set(lists(now)[row]), set(lists(then)[row])
            for broker in holds - held:
                count[broker][2 * place] += 1
            for broker in held - holds:
                count[broker][2 * place + 1] += 1
    columns = [getattr(found, each.name) for each in attrs.fields(type(found))][1:]
    assert [[int(column[row]) for column in columns] for row in range(found.broker_ids.size)] == list(count.values())


def test_views_without_a_common_topic_are_not_one_cluster() -> None:
    with pytest.raises(UsageError) as raised:
        compare(view_of({"a": [[1]]}), view_of({"b": [[1]], "c": [[1]]}))
    assert str(raised.value) == (
        "prod and prod have no topic in common (1 and 2 topics); they are not one cluster at two moments"
    )


def test_equal_views_differ_in_nothing() -> None:
    view = random_view(random.Random(1))
    found = compare(view, view)
    assert (found.topics, found.brokers, found.partitions) == ((), (), ())
    assert found.common_partition_count == view.partitions.count


def test_a_topic_is_not_gone_from_a_dump_that_lists_only_some() -> None:
    some = attrs.evolve(view_of({"a": [[1]]}), partitions_complete=False)
    assert topics_of(compare(view_of({"a": [[1]], "b": [[1]]}), some)) == []
