"""Clusters drawn with brokers in every state, and whether a plan for one is right, with nothing of the planner.

What it decides: the rules of a plan, from plain lists of ids; and by a flow with convex costs (OR-tools) that no
placement under these rules is more even, and none as even has fewer new replicas.

How: a broker with n replicas costs the sum of n odd numbers, so the least cost is the least sum of squares, which is
that of the most even loads; a new replica costs one, and a square's step more than all new replicas together. A group
of brokers that a partition must stand on pays back more than anything for its first replica.
"""

from __future__ import annotations

import random
from collections import Counter

import attrs
from ortools.graph.python import min_cost_flow

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.planning.goal import Goal

NARROW = ("drain", "factor")
States = dict[int, str]


@attrs.frozen
class Drawn:
    """A cluster, the truth of its brokers by id ("up", "cordoned", or why it is down), and a goal."""

    view: ClusterView
    states: States
    racks: dict[int, str]
    rows: list[list[int]]
    isr: list[list[int]]
    leaders: list[int]
    goal: Goal


def drawn(seed: int) -> Drawn:
    """Three to nine brokers, of which some are fenced, dead without a sign but the ISRs, gone, cordoned or empty."""
    rng = random.Random(seed)
    ids = sorted(rng.sample(range(1, 30), rng.randint(3, 9)))
    ways = ["up"] * 8 + ["fenced", "offline", "in no ISR", "cordoned"]
    states = {number: rng.choice(ways) for number in ids}
    empty = {number for number in ids if rng.random() < 0.15}
    holding = [number for number in ids if number not in empty or states[number] in ("offline", "in no ISR")] or ids
    names = rng.choice([["a", "b", "c"], ["a", "b", None], [None], ["a", "b"]])
    racks = {number: rng.choice(names) for number in ids}
    rows = [rng.sample(holding, rng.randint(1, min(4, len(holding)))) for _ in range(rng.randint(2, 12))]
    up = [[b for b in row if states[b] in ("up", "cordoned")] for row in rows]
    isr = [[b for b in able if rng.random() < 0.85] or able[:1] or row[:1] for row, able in zip(rows, up, strict=True)]
    for place, able in enumerate(up):  # A live broker is in the ISR somewhere, or nothing would show that it is alive.
        isr[place] += [b for b in able if b not in isr[place] and not any(b in each for each in isr)]
    leaders = [rng.choice(held) if able else -1 for held, able in zip(isr, up, strict=True)]
    held = {b for row in rows for b in row}
    states |= {b: "up" for b, how in states.items() if how in ("offline", "in no ISR") and b not in held}
    # A replica out of the ISR of a partition without a leader may be alive: it could not lead.
    shown = {b for row, able, members in zip(rows, up, isr, strict=True) for b in (row if able else members)}
    states |= {b: "up" for b, how in states.items() if how == "in no ISR" and b not in shown}
    offline = [[b for b in row if states[b] == "offline"] for row in rows]
    topics = sorted(rng.randrange(2) for _ in rows)
    view = ClusterView.build(
        name="drawn",
        source="test",
        format="test",
        brokers=[
            BrokerView(id=BrokerId(b), rack=racks[b], fenced=states[b] == "fenced", cordoned=states[b] == "cordoned")
            for b in ids
        ],
        topics=(TopicView("t", min_insync_replicas=rng.choice([1, 2, None])), TopicView("u")),
        partitions=PartitionTable(
            topic_index=topics,
            partition_ids=[topics[:place].count(one) for place, one in enumerate(topics)],
            replicas=_padded(rows),
            leader=leaders,
            isr=_padded(isr),
            offline=_padded(offline),
        ),
    )
    goal = _goal(rng, ids)
    racks = {
        b: name or f"alone {b}" for b, name in (racks | {n: name for n, name in goal.add if n not in racks}).items()
    }
    states |= {number: "up" for number, _ in goal.add if number not in states}
    return Drawn(view, states, racks, rows, isr, leaders, goal)


def _goal(rng: random.Random, ids: list[int]) -> Goal:
    kind = rng.choice(["balance", "drain", "drain", "factor", "factor", "add", "racks"])
    remove = rng.sample(ids, rng.randint(1, 2)) if kind == "drain" or rng.random() < 0.2 else []
    add = [(BrokerId(40 + n), rng.choice(["a", None])) for n in range(rng.randint(1, 2))]
    return Goal(
        kind=kind,
        remove=tuple(map(BrokerId, remove)),
        add=tuple(add) if kind == "add" or rng.random() < 0.3 else (),
        factor=rng.randint(1, 4) if kind == "factor" or (kind == "drain" and rng.random() < 0.2) else None,
        exclude_topics=("u",) if rng.random() < 0.15 else (),
    )


def _padded(rows: list[list[int]]) -> list[list[int]]:
    width = max(map(len, rows), default=0)
    return [row + [-1] * (width - len(row)) for row in rows]


@attrs.frozen
class Rule:
    """What one partition may become: who stays, who may be chosen, who may be new, and how many are wanted besides."""

    stays: list[int]
    own: list[int]
    new: list[int]
    wanted: int
    open_racks: set[str]


class Checker:
    """The rules of one plan; `target` are all partitions' replicas afterwards."""

    def __init__(self, case: Drawn, target: list[list[int]]) -> None:
        self.case, self.target = case, target
        gone = set(case.goal.remove)
        self.down = {b for b, how in case.states.items() if how not in ("up", "cordoned")} - gone
        self.cordoned = {b for b, how in case.states.items() if how == "cordoned"} - gone
        self.live = sorted(set(case.states) - self.down - self.cordoned - gone)
        self.rules = [self._rule(place) for place in range(len(case.rows))]

    def _rule(self, place: int) -> Rule | None:
        """What a partition may become; None for one that stays as it is."""
        case, row = self.case, self.case.rows[place]
        goal, kept = case.goal, [b for b in row if b not in case.goal.remove]
        topic = case.view.topics[int(case.view.partitions.topic_index[place])].name
        factor = len(row) if goal.factor is None else goal.factor
        if topic in goal.exclude_topics:
            return None
        if goal.kind not in NARROW:
            if set(row) & self.cordoned or case.leaders[place] < 0:
                return None
            stays = [b for b in kept if b in self.down]
            return self._ruled(stays, [b for b in kept if b in self.live], self.live, factor, self.live)
        if len(kept) == len(row) == factor:
            return None
        up = [b for b in kept if b in self.live]
        good = [b for b in up if b in case.isr[place]]
        if len(kept) <= factor:
            return self._ruled(kept, [], self.live, factor, self.live)
        if len(good) >= factor:
            first = [case.leaders[place], row[0]] if case.leaders[place] in good else [row[0]]
            stays = [b for b in dict.fromkeys(first) if b in good][:factor]
            rest = [b for b in good if b not in stays]
            return self._ruled(stays, rest, [], factor, rest)
        if len(up) >= factor:
            rest = [b for b in up if b not in good]
            return self._ruled(good, rest, [], factor, rest)
        return self._ruled(up, [], self.live, factor, self.live)

    def _ruled(self, stays: list[int], own: list[int], new: list[int], factor: int, racked: list[int]) -> Rule:
        barred = {self.case.racks[b] for b in stays}
        fresh = [b for b in new if b not in stays and b not in own]
        return Rule(stays, own, fresh, factor - len(stays), {self.case.racks[b] for b in racked} - barred)

    def faults(self) -> list[str]:
        """Everything that is wrong with the plan but how even and how small it is."""
        found = []
        for place, (row, after, rule) in enumerate(zip(self.case.rows, self.target, self.rules, strict=True)):
            if rule is None:
                found += [] if after == row else [f"{place}: {row} becomes {after}"]
                continue
            chosen = [b for b in after if b not in rule.stays]
            racks = {self.case.racks[b] for b in chosen} & rule.open_racks
            wrong = (
                len(set(after)) < len(after),
                not set(rule.stays) <= set(after),
                not set(chosen) <= set(rule.own) | set(rule.new),
                len(chosen) != rule.wanted,
                len(racks) < min(rule.wanted, len(rule.open_racks)),
                after[0] != row[0] and after[0] not in self.live,
            )
            found += [f"{place}: {row} becomes {after}: {wrong} by {rule}"] if any(wrong) else []
        return found

    def _loads(self, rows: list[list[int]]) -> Counter[int]:
        return Counter(b for row in rows for b in row if b in self.live)

    def cost(self) -> tuple[int, int]:
        """The sum of squares of the loads, and the new replicas."""
        new = sum(len(set(after) - set(row)) for row, after in zip(self.case.rows, self.target, strict=True))
        return sum(n * n for n in self._loads(self.target).values()), new

    def least(self) -> tuple[int, int] | None:
        """The least sum of squares of all placements, and the fewest new replicas among those; None without any."""
        flow = min_cost_flow.SimpleMinCostFlow()
        fixed = [row if rule is None else rule.stays for row, rule in zip(self.case.rows, self.rules, strict=True)]
        base, total = self._loads(fixed), sum(rule.wanted for rule in self.rules if rule)
        step, nodes = 1 + total, {("sink",): 0}

        def node(*name: object) -> int:
            return nodes.setdefault(name, len(nodes))

        paid = 0
        prize = (step + 1) * (2 * (total + len(self.case.rows)) + 2) * (total + 1)
        for place, rule in enumerate(self.rules):
            if rule is None or rule.wanted <= 0:
                continue
            flow.set_node_supply(node("row", place), rule.wanted)
            few = rule.wanted <= len(rule.open_racks)
            for rack in {self.case.racks[b] for b in (*rule.own, *rule.new)}:
                if rack in rule.open_racks:
                    flow.add_arc_with_capacity_and_unit_cost(node("row", place), node("rack", place, rack), 1, -prize)
                if not few:
                    flow.add_arc_with_capacity_and_unit_cost(
                        node("row", place), node("rack", place, rack), rule.wanted, 0
                    )
            paid += prize * min(rule.wanted, len(rule.open_racks))
            for b in (*rule.own, *rule.new):
                rack = node("rack", place, self.case.racks[b])
                flow.add_arc_with_capacity_and_unit_cost(rack, node("broker", b), 1, int(b in rule.new))
        for b in self.live:
            for n in range(base[b], base[b] + sum(bool(rule and rule.wanted > 0) for rule in self.rules)):
                flow.add_arc_with_capacity_and_unit_cost(node("broker", b), 0, 1, step * (2 * n + 1))
        flow.set_node_supply(0, -total)
        if flow.solve() != flow.OPTIMAL:
            return None
        squares, new = divmod(flow.optimal_cost() + paid, step)
        return squares + sum(n * n for n in base.values()), new
