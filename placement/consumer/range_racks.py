"""Assign ranges as RangeAssignor does with racks: members first get partitions with a replica in their own rack.

One topic that needs it switches the pass on for the whole call. Topics with the same subscribers and as many
partitions are matched together, number by number: the first member that matches the racks of all of them and has
room in all gets that number of each. Any other topic is matched alone: member by member takes the partitions of its
rack while it has room. A member without a rack matches everything. The rest is dealt in ranges, so ranges may have
gaps, and the members with one partition more are those that reached it first.

Example: a topic of 2 partitions with replicas in racks b and a, members x in a and y in b: x gets 1 and y gets 0.
Source: RangeAssignor.assignWithRackMatching, 4.3.1; KIP-881.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array
from placement.consumer.assignment import NOBODY
from placement.consumer.group import Group
from placement.consumer.racks import RackSet
from placement.consumer.ragged import Ragged


@attrs.define(eq=False)
class TopicRange:
    """Track one topic's assignment: its subscribers, the partitions left, and each member's remaining quota."""

    first_id: int
    racks: list[RackSet]
    members: list[int]
    least: int
    extra_left: int
    counts: dict[int, int]
    left: dict[int, None]

    @classmethod
    def of(cls, group: Group, topic: int, members: Sequence[int]) -> TopicRange:
        """Return the topic with no partition assigned."""
        begin, end = group.partition_starts[topic : topic + 2].tolist()
        least, extra = divmod(end - begin, len(members))
        racks = [group.replica_racks.sets[code] for code in group.replica_racks.codes[begin:end].tolist()]
        return cls(
            begin, racks, list(members), least, extra, dict.fromkeys(members, 0), dict.fromkeys(range(end - begin))
        )

    def room(self, member: int) -> int:
        """Return how many partitions this member may still get."""
        return max(0, self.least + (self.extra_left > 0) - self.counts[member])

    def give(self, member: int, numbers: Sequence[int], owners: Int32Array) -> None:
        """Assign these partition numbers to `member`."""
        self.counts[member] += len(numbers)
        if self.counts[member] > self.least:
            self.extra_left -= 1
        for number in numbers:
            del self.left[number]
            owners[self.first_id + number] = member


def needs_racks(group: Group, subscribers: Ragged) -> NDArray[np.bool_]:
    """Return bool[T]: the topics for which Kafka assigns rack-aware."""
    needing = np.zeros(len(group.topics), np.bool_)
    if not any(group.member_racks) or len(group.replica_racks.sets) == 1:
        return needing
    starts = group.partition_starts.tolist()
    for topic in np.flatnonzero((group.partition_counts > 0) & (subscribers.lengths > 0)).tolist():
        racks = [group.member_racks[member] for member in subscribers.row(topic).tolist()]
        codes = group.replica_racks.codes[starts[topic] : starts[topic + 1]]
        needing[topic] = group.replica_racks.aware(racks, codes)
    return needing


def assign_with_racks(group: Group, subscribers: Ragged, aware: NDArray[np.bool_]) -> Int32Array:
    """Return int32[P]: the owner of each partition by id; `aware` bool[T] marks the rack-aware topics."""
    owners = np.full(group.partition_count, NOBODY, np.int32)
    topics = np.flatnonzero((group.partition_counts > 0) & (subscribers.lengths > 0)).tolist()
    states = {topic: TopicRange.of(group, topic, subscribers.row(topic).tolist()) for topic in topics}
    alike: dict[tuple[tuple[int, ...], int], list[int]] = {}
    for topic, state in states.items():
        # Where no subscriber has a rack there is nothing to match, together or alone.
        if any(group.member_racks[member] for member in state.members):
            alike.setdefault((tuple(state.members), len(state.racks)), []).append(topic)
    for together in alike.values():
        # Topics with the same subscribers and as many partitions are co-partitioned: equal numbers go to one member,
        # even where no single topic asks for racks.
        if len(together) > 1:
            _match_together(group, [states[topic] for topic in together], owners)
        elif aware[together[0]]:
            _deal(group, states[together[0]], owners, matching=True)
    # What found no rack is dealt in ranges, as without racks.
    for state in states.values():
        _deal(group, state, owners, matching=False)
    return owners


def _matches(group: Group, member: int, racks: RackSet) -> bool:
    rack = group.member_racks[member]
    return not rack or rack in racks


def _match_together(group: Group, states: Sequence[TopicRange], owners: Int32Array) -> None:
    remaining = list(states[0].members)
    for number in range(len(states[0].racks)):
        for member in remaining:
            if all(_matches(group, member, one.racks[number]) and one.room(member) > 0 for one in states):
                for one in states:
                    one.give(member, [number], owners)
                if not any(one.room(member) for one in states):
                    remaining.remove(member)
                break


def _deal(group: Group, state: TopicRange, owners: Int32Array, *, matching: bool) -> None:
    for member in state.members:
        fitting = [number for number in state.left if not matching or _matches(group, member, state.racks[number])]
        taken = fitting[: state.room(member)]
        if taken:
            state.give(member, taken, owners)
