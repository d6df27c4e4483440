"""Split brokers into blocks of equal reachable load where some of them are cordoned and can only give.

What it decides: the blocks that placement/balance/reachable.py asks for, and what each holds, where a broker whose log
directories are all cordoned (KIP-1066) may keep what it holds, or lose it, but receives nothing.

Constraints: as there, and one more: a cordoned broker can hold a partition only if it holds it now. A rack whose live
brokers are all cordoned is open to the partitions that it holds now alone.

How: a unit is the brokers of a group that are not cordoned, or one cordoned broker. Three layers of a flow: classes,
groups of classes, units. With f replicas for a open groups, f <= a, a class gives each of its open groups at most one
replica a partition; else it gives each one a partition, and the rest anywhere. A set A of units can hold at most h(A),
the greatest flow from classes to A; blocks come from it as in placement/balance/reachable_kernel.py: where no flow
fills all units to the mean, those that no flow can fill are a block of their own, below the others.

Every sum is exact, in Python's whole numbers, as cordoned brokers are few. With classes that tell cordoned brokers
apart the optimum is exact. With more of them than a class can tell apart, partitions that stand on cordoned brokers of
the same racks are one class, and what is found is a bound if one of them stands on two cordoned brokers.

Example: brokers 0, 1 and 2 without racks, 2 cordoned with one of six partitions of factor 1: 0 and 1 share five.

    >>> units = Units(group=(0, 1, 2), weights=(1, 1, 1))
    >>> flow = Flow(supply=(5, 1), own=((0,) * 3,) * 2, limit=((5,) * 3, (1,) * 3), caps=((5, 5, 0), (1, 1, 1)))
    >>> blocks_of(units, flow)
    (((2,), 1), ((0, 1), 5))

Left out: speed for hundreds of cordoned brokers.

Source: the decomposition of a submodular set function (Fujishige 1980; Groenevelt 1991).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

import attrs

Matrix: TypeAlias = tuple[tuple[int, ...], ...]
Block: TypeAlias = tuple[tuple[int, ...], int]
"""Its units, ascending, and what they hold together."""

_SOURCE: Final = 0
_SINK: Final = 1


@attrs.frozen
class Units:
    """Hold, for each unit of alike brokers, its group and the number of brokers in it."""

    group: tuple[int, ...]
    weights: tuple[int, ...]


@attrs.frozen
class Flow:
    """Hold what can flow: from classes `supply` [C], of it to each group at most `limit` [C][G], and besides `own`.

    `own` [C][G] is what a class gives to a group in any case; `caps` [C][U] is what a unit can take of a class.
    """

    supply: tuple[int, ...]
    own: Matrix
    limit: Matrix
    caps: Matrix

    def held(self, units: Units, chosen: Collection[int]) -> int:
        """Return how much the chosen units can hold at most."""
        total = 0
        for supply, own, limit, caps in zip(self.supply, self.own, self.limit, self.caps, strict=True):
            room = _room(units, caps, chosen, len(own))
            first = [min(each, space) for each, space in zip(own, room, strict=True)]
            more = sum(min(most, space - each) for most, space, each in zip(limit, room, first, strict=True))
            total += sum(first) + min(supply, more)
        return total

    def without(self, units: Units, taken: Collection[int]) -> Flow:
        """Return what is left to flow once the units `taken` hold as much as they can."""
        supplies, owns, limits = [], [], []
        for supply, own, limit, caps in zip(self.supply, self.own, self.limit, self.caps, strict=True):
            room = _room(units, caps, taken, len(own))
            first = [min(each, space) for each, space in zip(own, room, strict=True)]
            more = [min(most, space - each) for most, space, each in zip(limit, room, first, strict=True)]
            supplies.append(max(supply - sum(more), 0))
            owns.append(tuple(each - gone for each, gone in zip(own, first, strict=True)))
            limits.append(tuple(most - gone for most, gone in zip(limit, more, strict=True)))
        return Flow(tuple(supplies), tuple(owns), tuple(limits), self.caps)


def blocks_of(units: Units, flow: Flow) -> tuple[Block, ...]:
    """Return the blocks of units, lowest load a broker first. Cost: at most two flows for each unit."""
    waiting = [tuple(range(len(units.group)))] if units.group else []
    lower: list[int] = []
    found: list[Block] = []
    while waiting:
        members = waiting.pop()
        left = flow.without(units, lower)
        total = left.held(units, members)
        short = _short(units, left, members, total)
        if not short or len(short) == len(members):
            found.append((members, total))
            lower += members
        else:
            waiting += [
                tuple(one for one in members if one not in short),
                tuple(one for one in members if one in short),
            ]
    return tuple(found)


def _room(units: Units, caps: Sequence[int], chosen: Collection[int], group_count: int) -> list[int]:
    room = [0] * group_count
    for unit in chosen:
        room[units.group[unit]] += caps[unit]
    return room


def _short(units: Units, flow: Flow, members: Sequence[int], total: int) -> set[int]:
    """Return the units that no flow fills to `total` shared out by brokers; none if all can be filled."""
    brokers = sum(units.weights[unit] for unit in members)
    graph = _Graph(2 + len(members))
    place = {unit: 2 + number for number, unit in enumerate(members)}
    for unit in members:
        graph.join(place[unit], _SINK, total * units.weights[unit])
    for supply, own, limit, caps in zip(flow.supply, flow.own, flow.limit, flow.caps, strict=True):
        by_group: dict[int, list[int]] = {}
        for unit in members:
            if caps[unit]:
                by_group.setdefault(units.group[unit], []).append(unit)
        if not by_group:
            continue
        source = graph.add()
        graph.join(_SOURCE, source, supply * brokers)
        for group, its in by_group.items():
            middle = graph.add()
            graph.join(source, middle, limit[group] * brokers)
            graph.join(_SOURCE, middle, own[group] * brokers)
            for unit in its:
                graph.join(middle, place[unit], caps[unit] * brokers)
    if graph.push() >= total * brokers:
        return set()
    behind = graph.behind_sink()
    return {unit for unit in members if place[unit] in behind}


class _Graph:
    """A graph of arcs with room left, each beside the arc back."""

    def __init__(self, count: int) -> None:
        self.arcs: list[list[int]] = [[] for _ in range(count)]
        self.to: list[int] = []
        self.left: list[int] = []

    def add(self) -> int:
        """Add a node and return it."""
        self.arcs.append([])
        return len(self.arcs) - 1

    def join(self, start: int, end: int, room: int) -> None:
        """Add an arc, if there is room on it."""
        if room > 0:
            for node, other, space in ((start, end, room), (end, start, 0)):
                self.arcs[node].append(len(self.to))
                self.to.append(other)
                self.left.append(space)

    def push(self) -> int:
        """Send as much as possible from the source to the sink; return how much, by shortest paths."""
        sent = 0
        while True:
            came = {_SOURCE: -1}
            queue = deque([_SOURCE])
            while queue and _SINK not in came:
                node = queue.popleft()
                for arc in self.arcs[node]:
                    if self.left[arc] and self.to[arc] not in came:
                        came[self.to[arc]] = arc
                        queue.append(self.to[arc])
            if _SINK not in came:
                return sent
            path, node = [], _SINK
            while node != _SOURCE:
                path.append(came[node])
                node = self.to[came[node] ^ 1]
            units = min(self.left[arc] for arc in path)
            for arc in path:
                self.left[arc] -= units
                self.left[arc ^ 1] += units
            sent += units

    def behind_sink(self) -> set[int]:
        """Return the nodes from which the sink can be reached on arcs with room left."""
        seen, queue = {_SINK}, deque([_SINK])
        while queue:
            node = queue.popleft()
            for arc in self.arcs[node]:
                if self.left[arc ^ 1] and self.to[arc] not in seen:
                    seen.add(self.to[arc])
                    queue.append(self.to[arc])
        return seen
