"""Least moves of a plan, by trying every placement of a small cluster, with nothing of the planner."""

from __future__ import annotations

import itertools
import random

import attrs
import numpy as np

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.planning.goal import Goal

Load = tuple[int, ...]
NARROW = ("drain", "factor")
"""Goals that change only partitions on removed brokers, or of another factor."""


def random_view(seed: int, *, cordoned: float = 0.0) -> ClusterView:
    """Up to six brokers on three racks or none, some fenced, and up to five partitions of two topics.

    With `cordoned` so many brokers are cordoned, some of them whole racks, and some fenced ones stopping instead.
    """
    rng = random.Random(seed)
    brokers = rng.randint(1, 6)
    names = rng.choice([["a", "b", "c"], ["a", "b", None], [None], ["a", "b"]])
    ids = sorted(rng.sample(range(20), brokers))
    fenced = [rng.random() < 0.15 for _ in ids]
    count = rng.randint(1, 5)
    rows = [rng.sample(ids, rng.randint(1, min(3, brokers))) for _ in range(count)]
    topic = sorted(rng.randrange(2) for _ in range(count))
    able = [[b for b in row if not fenced[ids.index(b)]] for row in rows]
    listed = tuple(
        BrokerView(id=BrokerId(number), rack=rng.choice(names), fenced=down)
        for number, down in zip(ids, fenced, strict=True)
    )
    return ClusterView(
        name="c",
        source="test",
        format="test",
        brokers=_cordoned(listed, random.Random(seed + 7), cordoned) if cordoned else listed,
        topics=(TopicView("t"), TopicView("u")),
        partitions=PartitionTable(
            topic_index=topic,
            partition_ids=[topic[:place].count(one) for place, one in enumerate(topic)],
            replicas=np.array([row + [-1] * (3 - len(row)) for row in rows], dtype=np.int32),
            leader=[rng.choice(row) if row else -1 for row in able],
        ),
    )


def _cordoned(brokers: tuple[BrokerView, ...], rng: random.Random, part: float) -> tuple[BrokerView, ...]:
    rack = rng.choice([one.rack for one in brokers])
    found = []
    for one in brokers:
        whole = rng.random() < part and one.rack is not None and one.rack == rack
        stops = one.fenced and rng.random() < 0.5
        flags = {"cordoned": whole or rng.random() < part, "fenced": one.fenced and not stops}
        found.append(attrs.evolve(one, in_controlled_shutdown=stops, **flags))
    return tuple(found)


def random_goal(view: ClusterView, seed: int) -> Goal:
    """A goal that the view may or may not reach."""
    rng = random.Random(seed + 1)
    ids = [one.id for one in view.brokers]
    kind = rng.choice(["balance", "drain", "add", "racks", "factor", "balance"])
    remove = rng.sample(ids, 1) if kind == "drain" or (kind == "balance" and rng.random() < 0.3) else []
    new = [(BrokerId(30 + n), rng.choice(["a", "b", None])) for n in range(rng.randint(1, 2))]
    add = new if kind == "add" or rng.random() < 0.2 else []
    return Goal(
        kind=kind,
        remove=tuple(remove),
        add=tuple(add),
        factor=rng.randint(1, 3) if kind == "factor" else None,
        exclude_topics=("u",) if rng.random() < 0.2 else (),
        new_only_receives=bool(add) and rng.random() < 0.4,
    )


class Enumerated:
    """Every placement that the rules allow; `view` has the added brokers."""

    def __init__(self, view: ClusterView, goal: Goal) -> None:
        self.view, self.goal = view, goal
        self.racks = {b.id: f"alone {b.id}" if b.rack is None else f"rack {b.rack}" for b in view.brokers}
        self.down = {b.id for b, alive in zip(view.brokers, view.alive.tolist(), strict=True) if not alive}
        self.cordoned = {b.id for b in view.brokers if b.cordoned} - self.down - set(goal.remove)
        self.live = [b.id for b in view.brokers if b.id not in self.down | self.cordoned | set(goal.remove)]
        new = {number for number, _ in goal.add}
        self.able = [b for b in self.live if b in new or not goal.new_only_receives]
        self.rows = [[b for b in row if b >= 0] for row in view.partitions.replicas.tolist()]
        isr = view.partitions.isr
        self.isr = self.rows if isr is None else [[b for b in row if b >= 0] for row in isr.tolist()]
        names = [view.topics[t].name for t in view.partitions.topic_index.tolist()]
        listed = view.partitions.leader
        self.unled = [False] * len(self.rows) if listed is None else (listed == -1).tolist()
        rows = zip(self.rows, names, self.unled, strict=True)
        self.fixed = [self._is_fixed(row, name) or (unled and goal.kind not in NARROW) for row, name, unled in rows]

    def _is_fixed(self, held: list[int], topic: str) -> bool:
        if topic in self.goal.exclude_topics:
            return True
        if self.goal.kind in NARROW:
            return not set(held) & set(self.goal.remove) and self.goal.factor in (None, len(held))
        return bool(set(held) & self.cordoned)

    def sets(self, row: int) -> list[tuple[int, ...]]:
        """Every set of live brokers that may hold a partition, besides what stays on brokers that are down."""
        held, goal = self.rows[row], self.goal
        if self.fixed[row]:
            return [tuple(b for b in held if b in self.live)]
        kept = [b for b in held if b not in goal.remove]
        factor = len(held) if goal.factor is None else goal.factor
        if goal.kind not in NARROW:
            stays, own, able, racked = [b for b in kept if b in self.down], kept, self.able, self.live
        elif len(kept) <= factor:
            stays, own, able, racked = kept, [], self.able, self.able
        else:
            return self.shed(row, kept, factor)
        choices = [b for b in self.live if (b in own or b in able) and b not in stays]
        lacks = max(factor - len(stays), 0)
        barred = {self.racks[b] for b in stays}
        every = min(lacks, len({self.racks[b] for b in racked} - barred))
        return [
            tuple(b for b in (*one, *stays) if b in self.live)
            for one in itertools.combinations(choices, lacks)
            if len({self.racks[b] for b in one} - barred) == every
        ]

    def shed(self, row: int, kept: list[int], factor: int) -> list[tuple[int, ...]]:
        """Every set that a partition with too many replicas may keep: those in sync first, its leaders among them."""
        up = [b for b in kept if b in self.live]
        good = [b for b in up if b in self.isr[row]]
        if len(up) < factor:
            lacks = factor - len(up)
            new = [b for b in self.able if b not in up]
            barred = {self.racks[b] for b in up}
            every = min(lacks, len({self.racks[b] for b in new} - barred))
            found = itertools.combinations(new, lacks)
            return [(*up, *one) for one in found if len({self.racks[b] for b in one} - barred) == every]
        pool, must = (good, self.leaders(row, good, factor)) if len(good) >= factor else (up, good)
        found = [one for one in itertools.combinations(pool, factor) if set(must) <= set(one)]
        barred = {self.racks[b] for b in must}
        most = max(len({self.racks[b] for b in one if b not in must} - barred) for one in found)
        return [one for one in found if len({self.racks[b] for b in one if b not in must} - barred) == most]

    def leaders(self, row: int, good: list[int], factor: int) -> list[int]:
        """Who leads now, then the preferred leader, of those in sync."""
        held = [b for b in self.rows[row] if b not in self.down]
        listed = self.view.partitions.leader
        now = int(listed[row]) if listed is not None and int(listed[row]) in held else held[0]
        both = [b for b in dict.fromkeys([now, self.rows[row][0]]) if b in good]
        return both[:factor]

    def leader(self, row: int) -> int:
        """Who led before: first replica, listed leader, first live replica."""
        if self.unled[row]:
            return -1
        held = self.rows[row]
        up = [b for b in held if b not in self.down]
        listed = self.view.partitions.leader
        if held and held[0] in up:
            return held[0]
        if listed is not None and int(listed[row]) in up:
            return int(listed[row])
        return up[0] if up else -1

    def spent(self, row: int, new: int, gone: bool) -> tuple[int, int]:
        """What a partition costs: (new replicas, lost leaders), or by bytes (bytes, new replicas and lost leaders)."""
        sizes = self.view.partitions.size_bytes
        if self.goal.by == "bytes":
            assert sizes is not None
            return (int(sizes[row]) * new, new + int(gone))
        return (new, int(gone))

    def costs(self) -> dict[Load, tuple[int, int]]:
        """The least cost of every vector of loads of live brokers."""
        states: dict[Load, tuple[int, int]] = {(0,) * len(self.live): (0, 0)}
        for row, held in enumerate(self.rows):
            after: dict[Load, tuple[int, int]] = {}
            leader = self.leader(row)
            for load, (first, second) in states.items():
                for one in self.sets(row):
                    new = sum(b not in held for b in one)
                    gone = leader in self.live and leader not in one and not self.fixed[row]
                    gone = gone and self.goal.kind not in NARROW
                    key = tuple(n + (b in one) for b, n in zip(self.live, load, strict=True))
                    own = self.spent(row, new, gone)
                    spent = (first + own[0], second + own[1])
                    after[key] = min(spent, after.get(key, spent))
            states = after
        return states

    def least(self) -> tuple[int, int] | None:
        """The least cost of loads that the goal asks for; None if a partition has no place."""
        found = self.costs()
        if not found:
            return None
        best = min(sum(n * n for n in load) for load in found)
        even = [load for load in found if sum(n * n for n in load) == best]
        if self.goal.kind != "racks":
            return min(found[load] for load in even)
        before = [sum(b in row for row in self.rows) for b in self.live]
        low = [min(n, min(load[i] for load in even)) for i, n in enumerate(before)]
        high = [max(n, max(load[i] for load in even)) for i, n in enumerate(before)]
        return min(
            spent
            for load, spent in found.items()
            if all(least <= n <= most for least, n, most in zip(low, load, high, strict=True))
        )
