"""Compare two dumps of one cluster: topics, brokers, settings, and which broker each change is about.

Only what both views say is compared: of a topic's own settings beside the effective ones, which count those of the
brokers too, the own ones alone; a topic is new or gone only if the other view lists every partition. A topic of equal
name whose id differs was deleted and made again. Views without a topic in common are refused: they are not one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np

from broker.cluster import BROKER_FLAGS, ClusterView, Int32Array, Int64Array, SettingsShown, TopicView
from broker.errors import UsageError
from broker.min_isr import MIN_ISR, min_isr_of
from broker.row_flags import members
from broker.wording import counted
from placement.balance.changes import ClusterChange, changes, matched_rows, recreated
from placement.balance.loads import LEADER_NOT_SAID, partition_bytes, summed_by

TOPIC_CREATED: Final = "topic created"
TOPIC_DELETED: Final = "topic deleted"
TOPIC_RECREATED: Final = "topic deleted and created again"
TOPIC_GROWN: Final = "partitions added"
FACTOR_CHANGED: Final = "replication factor changed"
SETTING_CHANGED: Final = "setting changed"
BROKER_NEW: Final = "broker new"
BROKER_GONE: Final = "broker gone"
RACK_CHANGED: Final = "rack changed"


@attrs.frozen(kw_only=True)
class Change:
    """Describe one change of a topic or of a broker; `detail` gives the state before and after in words."""

    subject: str
    change: str
    detail: str


@attrs.frozen(kw_only=True, eq=False)
class BrokerTurnover:
    """Count for each of `broker_ids` the partitions in which it gained or lost a role, int64[B]; None: not known."""

    broker_ids: Int32Array
    leaders_gained: Int64Array | None
    leaders_lost: Int64Array | None
    isr_joined: Int64Array | None
    isr_left: Int64Array | None
    replicas_gained: Int64Array
    replicas_lost: Int64Array


@attrs.frozen(kw_only=True, eq=False)
class TopicSize:
    """Hold one topic's partition count and bytes before and after; None if the topic or its size is missing."""

    topic: str
    partitions_before: int | None
    partitions_after: int | None
    bytes_before: int | None
    bytes_after: int | None


@attrs.frozen(kw_only=True, eq=False)
class Comparison:
    """Hold what differs between two views of one cluster; tuples stand in order of topic name or broker id."""

    before: ClusterView
    after: ClusterView
    common_partition_count: int
    topics: tuple[Change, ...]
    brokers: tuple[Change, ...]
    partitions: tuple[ClusterChange, ...]
    turnover: BrokerTurnover
    sizes: tuple[TopicSize, ...]


def compare(before: ClusterView, after: ClusterView) -> Comparison:
    """Return what differs between two views; raise UsageError if no topic is in both.

    Cost: O(P log P) for P partitions, plus words for those that changed.
    """
    earlier = {topic.name: topic for topic in before.topics}
    later = {topic.name: topic for topic in after.topics}
    if not earlier.keys() & later.keys():
        raise UsageError(
            f"{before.name} and {after.name} have no topic in common ({len(earlier)} and {len(later)} topics); they "
            "are not one cluster at two moments"
        )
    _, rows_before, rows_after = matched_rows(before, after)
    counts_before, counts_after = _partition_counts(before), _partition_counts(after)
    return Comparison(
        before=before,
        after=after,
        common_partition_count=int(rows_before.size),
        topics=tuple(_topic_changes(before, after, counts_before, counts_after)),
        brokers=tuple(_broker_changes(before, after)),
        partitions=changes(before, after),
        turnover=_turnover(before, after, rows_before, rows_after),
        sizes=tuple(_sizes(before, after, counts_before, counts_after)),
    )


def _topic_changes(
    before: ClusterView, after: ClusterView, counts_before: dict[str, int], counts_after: dict[str, int]
) -> Iterator[Change]:
    earlier = {topic.name: topic for topic in before.topics}
    later = {topic.name: topic for topic in after.topics}
    factors_before, factors_after = _factors(before), _factors(after)
    again = set(recreated(before, after))
    for name in sorted(earlier.keys() | later.keys()):
        one, other = earlier.get(name), later.get(name)
        if one is None or other is None:
            view, what = (before, TOPIC_CREATED) if one is None else (after, TOPIC_DELETED)
            counts = counts_after if one is None else counts_before
            if view.partitions_complete:
                yield Change(subject=name, change=what, detail=counted(counts.get(name, 0), "partition"))
            continue
        if name in again:
            yield Change(subject=name, change=TOPIC_RECREATED, detail=f"id {one.topic_id}, then {other.topic_id}")
            continue  # Another topic of the same name: nothing of it has changed.
        first, last = counts_before.get(name, 0), counts_after.get(name, 0)
        if last > first and before.partitions_complete:
            yield Change(subject=name, change=TOPIC_GROWN, detail=f"{counted(first, 'partition')}, then {last:,}")
        if name in factors_before and name in factors_after and factors_before[name] != factors_after[name]:
            detail = f"{_factor_text(factors_before[name])}, then {_factor_text(factors_after[name])}"
            yield Change(subject=name, change=FACTOR_CHANGED, detail=detail)
        yield from _settings(one, other, _kind(before, one), _kind(after, other))


def _kind(view: ClusterView, topic: TopicView) -> SettingsShown:
    """Return which settings of `topic` the view shows; without a topic line, which has the count, there are none."""
    return SettingsShown.NONE if topic.partition_count is None else view.settings_shown


def _settings(one: TopicView, other: TopicView, kind: SettingsShown, later: SettingsShown) -> Iterator[Change]:
    """Yield the settings of a topic that certainly changed, between two inputs that may show different settings."""
    first, last = dict(one.configs), dict(other.configs)
    if SettingsShown.NONE in (kind, later):
        first, last = _least(one), _least(other)
        keys = first.keys() & last.keys()
    elif kind is later:
        keys = first.keys() | last.keys()
    else:
        keys = set(first if kind is SettingsShown.OWN else last)
    for key in sorted(keys):
        if first.get(key) != last.get(key):
            detail = f"{key} {first.get(key, '(not set)')}, then {last.get(key, '(not set)')}"
            yield Change(subject=one.name, change=SETTING_CHANGED, detail=detail)


def _least(topic: TopicView) -> dict[str, str]:
    least = min_isr_of(topic)
    return {} if least is None else {MIN_ISR: str(least)}


def _broker_changes(before: ClusterView, after: ClusterView) -> Iterator[Change]:
    earlier = {broker.id: broker for broker in before.brokers}
    later = {broker.id: broker for broker in after.brokers}
    for number in sorted(earlier.keys() | later.keys()):
        one, other = earlier.get(number), later.get(number)
        subject = str(number)
        if one is None or other is None:
            yield Change(subject=subject, change=BROKER_NEW if one is None else BROKER_GONE, detail="")
            continue
        if one.rack is not None and other.rack is not None and one.rack != other.rack:
            yield Change(subject=subject, change=RACK_CHANGED, detail=f"rack {one.rack}, then {other.rack}")
        for flag in BROKER_FLAGS:
            if getattr(one, flag) != getattr(other, flag):
                yield Change(subject=subject, change=_flag_change(flag, getattr(other, flag)), detail="")


def _flag_change(flag: str, is_set: bool) -> str:
    """Return the change of a broker's flag in words, such as "broker unfenced"."""
    negation = "no longer " if "_" in flag else "un"
    return f"broker {'' if is_set else negation}{flag.replace('_', ' ')}"


def _turnover(
    before: ClusterView, after: ClusterView, rows_before: Int64Array, rows_after: Int64Array
) -> BrokerTurnover:
    ids = np.union1d(before.broker_ids, after.broker_ids).astype(np.int32)
    one, other = before.partitions, after.partitions
    led: list[Int64Array | None] = [None, None]
    if one.leader is not None and other.leader is not None:
        first, last = one.leader[rows_before], other.leader[rows_after]
        moved = (first != last) & (first != LEADER_NOT_SAID) & (last != LEADER_NOT_SAID)
        led = [_count(last[moved], ids), _count(first[moved], ids)]
    synced: list[Int64Array | None] = [None, None]
    if one.isr is not None and other.isr is not None:
        synced = list(_joined_and_left(one.isr[rows_before], other.isr[rows_after], ids))
    gained, lost = _joined_and_left(one.replicas[rows_before], other.replicas[rows_after], ids)
    return BrokerTurnover(
        broker_ids=ids,
        leaders_gained=led[0],
        leaders_lost=led[1],
        isr_joined=synced[0],
        isr_left=synced[1],
        replicas_gained=gained,
        replicas_lost=lost,
    )


def _joined_and_left(first: Int32Array, last: Int32Array, ids: Int32Array) -> tuple[Int64Array, Int64Array]:
    """Return in how many rows each broker is in the second matrix only, and in the first only."""
    return _count(last[~members(last, first)], ids), _count(first[~members(first, last)], ids)


def _count(values: Int32Array, ids: Int32Array) -> Int64Array:
    held = values[values >= 0]
    return np.bincount(np.searchsorted(ids, held), minlength=ids.size).astype(np.int64)


def _sizes(
    before: ClusterView, after: ClusterView, counts_before: dict[str, int], counts_after: dict[str, int]
) -> Iterator[TopicSize]:
    bytes_before, bytes_after = _bytes(before), _bytes(after)
    for name in sorted({topic.name for topic in (*before.topics, *after.topics)}):
        yield TopicSize(
            topic=name,
            partitions_before=counts_before.get(name),
            partitions_after=counts_after.get(name),
            bytes_before=bytes_before.get(name),
            bytes_after=bytes_after.get(name),
        )


def _bytes(view: ClusterView) -> dict[str, int]:
    sizes = partition_bytes(view.partitions)
    if sizes is None:
        return {}
    total = summed_by(view.partitions.topic_index, sizes, len(view.topics))
    return {topic.name: int(total[index]) for index, topic in enumerate(view.topics)}


def _partition_counts(view: ClusterView) -> dict[str, int]:
    counted = np.bincount(view.partitions.topic_index, minlength=len(view.topics))
    return {topic.name: int(counted[index]) for index, topic in enumerate(view.topics)}


def _factors(view: ClusterView) -> dict[str, tuple[int, int]]:
    """Return the least and the greatest factor of each topic, without replicas that a reassignment adds."""
    table = view.partitions
    factor = np.count_nonzero(table.replicas >= 0, axis=1)
    if table.adding is not None:
        factor -= np.count_nonzero(table.adding >= 0, axis=1)
    least, most = np.full(len(view.topics), np.iinfo(np.int64).max), np.zeros(len(view.topics), dtype=np.int64)
    np.minimum.at(least, table.topic_index, factor)
    np.maximum.at(most, table.topic_index, factor)
    return {topic.name: (int(least[index]), int(most[index])) for index, topic in enumerate(view.topics) if most[index]}


def _factor_text(factor: tuple[int, int]) -> str:
    return counted(factor[0], "replica") if factor[0] == factor[1] else f"{factor[0]} to {factor[1]} replicas"
