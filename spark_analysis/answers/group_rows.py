"""Answer questions about the groups of one task, with the assignors and the model of traffic.

Nothing here imports pyspark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import attrs
import numpy as np

from broker.errors import RefusedError
from broker.ids import TopicPartition
from broker.releases import Release
from placement.consumer.assignment import GroupAssignment
from placement.consumer.measures import rack_matches
from placement.consumer.moves import moves_of
from placement.consumer.optimum import optimum_of
from placement.traffic.consumers import HELD_NOT_KNOWN, NOW, Consumers
from placement.traffic.crossing import NOTHING, Crossing, cost_of
from placement.traffic.group_traffic import GroupTraffic, group_traffic, least_fetched, least_of
from placement.traffic.savings import LEAST, Change, add_readers, no_readers
from placement.traffic.zones import ZonedPartitions

Row: TypeAlias = dict[str, Any]
_Answer = TypeVar("_Answer")
_FLOWS: Final = ("produce", "replicate", "consume")


@attrs.frozen
class GroupsAsked:
    """Name the assignors asked about, the release of Kafka that they are of, and the price of a GiB across zones."""

    assignors: tuple[str, ...]
    release: Release
    price_per_gib: float


GroupKernel: TypeAlias = Callable[[ZonedPartitions, Sequence[Consumers], GroupsAsked], Iterator[Row]]


def assignment_rows(_: ZonedPartitions, groups: Sequence[Consumers], asked: GroupsAsked) -> Iterator[Row]:
    """Yield a row per partition that a member gets from the first assignor."""
    for consumers in groups:
        owners = _owners(consumers, asked.assignors[0], asked.release)
        if isinstance(owners, str):
            yield {"group": consumers.name, "fault": owners}
            continue
        group = consumers.group
        for place in np.flatnonzero(owners >= 0).tolist():
            one = group.name_of(place)
            yield {"group": consumers.name, "member_id": group.members[owners[place]], **_named(one)}


def balance_rows(_: ZonedPartitions, groups: Sequence[Consumers], asked: GroupsAsked) -> Iterator[Row]:
    """Yield a row per group and assignor: sizes beside the most even ones, moves, and rack matches."""
    for consumers in groups:
        optimum, group = optimum_of(consumers.group), consumers.group
        for assignor in asked.assignors:
            row: Row = {"group": consumers.name, "assignor": assignor}
            owners = _owners(consumers, assignor, asked.release)
            if isinstance(owners, str):
                yield row | {"fault": owners}
                continue
            sizes = np.bincount(owners[owners >= 0], minlength=len(group.members))
            matched, racked = rack_matches(GroupAssignment.of_owners(group, owners))
            known = optimum is not None and len(optimum.sizes) > 0
            yield row | {
                "member_count": len(group.members),
                "partition_count": len(owners),
                "assigned_count": int((owners >= 0).sum()),
                "size_min": int(sizes.min()) if len(sizes) else 0,
                "size_max": int(sizes.max(initial=0)),
                "best_size_min": int(optimum.sizes[0]) if optimum is not None and known else None,
                "best_size_max": int(optimum.sizes[-1]) if optimum is not None and known else None,
                "moved_count": consumers.moved_count(owners),
                "matched_count": matched,
                "racked_count": racked,
            }


def move_rows(_: ZonedPartitions, groups: Sequence[Consumers], asked: GroupsAsked) -> Iterator[Row]:
    """Yield a row per partition that the first assignor gives to another member than holds it now."""
    for consumers in groups:
        if not consumers.is_held_known:
            rejected = len(consumers.group.members)
            yield {"group": consumers.name, "fault": HELD_NOT_KNOWN, "rejected_count": rejected}
            continue
        owners = _owners(consumers, asked.assignors[0], asked.release)
        if isinstance(owners, str):
            yield {"group": consumers.name, "fault": owners}
            continue
        group = consumers.group
        held: Mapping[str, Sequence[TopicPartition]] = {
            member: [group.name_of(one) for one in row]
            for member, row in zip(group.members, group.owned.lists(), strict=True)
        }
        for move in moves_of(GroupAssignment.of_owners(group, owners), held):
            why = move.why.name.lower()
            yield {
                "group": consumers.name,
                **_named(move.partition),
                "before": move.before,
                "after": move.after,
                "why": why,
            }


def traffic_rows(partitions: ZonedPartitions, groups: Sequence[Consumers], asked: GroupsAsked) -> Iterator[Row]:
    """Yield a row per group and assignor: what is fetched across zones, beside the least."""
    for consumers in groups:
        least_count, least_bytes = least_of(partitions, consumers)
        for assignor in asked.assignors:
            row: Row = {"group": consumers.name, "assignor": assignor}
            found = traffic_or_refusal(partitions, consumers, assignor, asked.release)
            if isinstance(found, str):
                yield row | {"fault": found}
                continue
            yield row | {
                "fetched_count": int(found.leader.count),
                "unknown_count": int(found.leader.unknown_count),
                "fetched_bytes": _whole(found.leader.size_bytes),
                "crossing_count": int(found.leader.crossing_count),
                "crossing_bytes": _whole(found.leader.crossing_bytes),
                "closest_count": int(found.closest.crossing_count),
                "closest_bytes": _whole(found.closest.crossing_bytes),
                "least_count": least_count,
                "least_bytes": least_bytes,
                "moved_count": found.moved_count,
                "cost": cost_of(found.leader.crossing_bytes, asked.price_per_gib),
                "closest_cost": cost_of(found.closest.crossing_bytes, asked.price_per_gib),
            }


def reader_rows(partitions: ZonedPartitions, groups: Sequence[Consumers], asked: GroupsAsked) -> Iterator[Row]:
    """Yield how many groups read each partition from each zone with each assignor, and the least of all groups."""
    least = NOTHING
    for consumers in groups:
        least = least.plus(least_fetched(partitions, consumers))
    yield {
        "assignor": LEAST,
        "reader_count": int(least.count),
        "crossing_count": least.crossing_count,
        "unknown_count": least.unknown_count,
        "fetched_bytes": least.size_bytes,
        "crossing_bytes": least.crossing_bytes,
    }
    topics = np.repeat(np.arange(len(partitions.topics)), np.diff(partitions.starts))
    for assignor in asked.assignors:
        readers = no_readers(partitions)
        for consumers in groups:
            found = traffic_or_refusal(partitions, consumers, assignor, asked.release)
            if isinstance(found, str):
                yield {"assignor": assignor, "fault": f"group {consumers.name!r}: {found}"}
                continue
            add_readers(readers, consumers.rows, found.reader_zones, found.is_read)
        zones = (*partitions.zones, ELSEWHERE, None)
        for row, zone in zip(*(part.tolist() for part in np.nonzero(readers)), strict=True):
            topic = int(topics[row])
            yield {
                "assignor": assignor,
                "topic": partitions.topics[topic],
                "partition": row - int(partitions.starts[topic]),
                "zone": zones[zone],
                "reader_count": int(readers[row, zone]),
            }


ELSEWHERE: Final = ""
"""The zone of members whose rack no broker has; no rack is called so."""


def change_rows(changes: Iterable[Change], price_per_gib: float) -> Iterator[Row]:
    """Yield a row per change: what crosses zones, and what that saves beside `now`, null where `now` is not known."""
    now: Crossing | None = None
    for change in changes:
        total = change.total
        now = total if change.name == NOW else now
        row: Row = {"change": change.name}
        for name in _FLOWS:
            flow: Crossing = getattr(change, name)
            row |= {f"{name}_count": flow.crossing_count, f"{name}_bytes": flow.crossing_bytes}
        before, after = None if now is None else now.crossing_bytes, total.crossing_bytes
        saved = None if before is None or after is None else before - after
        yield row | {
            "unknown_count": total.unknown_count,
            "crossing_bytes": after,
            "saved_bytes": saved,
            "cost": cost_of(after, price_per_gib),
            "saved_cost": cost_of(saved, price_per_gib),
        }


def _owners(consumers: Consumers, assignor: str, release: Release) -> Any:
    """Return the owner of each partition, or why there is no answer."""
    if assignor == NOW:
        return _answer_or_reason(consumers, assignor, lambda: consumers.held)
    return _answer_or_reason(consumers, assignor, lambda: consumers.assigned(assignor, release=release))


def traffic_or_refusal(
    partitions: ZonedPartitions, consumers: Consumers, assignor: str, release: Release
) -> GroupTraffic | str:
    """Return what a group fetches with an assignor, or why there is no answer."""
    return _answer_or_reason(
        consumers, assignor, lambda: group_traffic(partitions, consumers, assignor, release=release)
    )


def _answer_or_reason(consumers: Consumers, assignor: str, answer: Callable[[], _Answer]) -> _Answer | str:
    """Return an answer about an assignor, or why there is none: Kafka's refuses, or `now` is not known."""
    if assignor == NOW and not consumers.is_held_known:
        return HELD_NOT_KNOWN
    try:
        return answer()
    except RefusedError as refusal:
        return f"{assignor}: Kafka throws {refusal.kafka_class}: {refusal}"


def _named(one: TopicPartition) -> Row:
    return {"topic": one.topic, "partition": int(one.partition)}


def _whole(size_bytes: float | None) -> int | None:
    return None if size_bytes is None else int(size_bytes)
