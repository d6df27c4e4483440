"""Exchange replicas along cheapest paths, one replica at a time: the readable twin of the compiled kernels.

How: placement begins empty. Each missing replica takes the cheapest path to a broker with room: from its partition to a
broker that may hold it, and as often as need be from a broker to another that takes over one of its partitions. The
cost of a path is compared in this order: brokers brought up to their lower bound, new replicas, kept leaders,
exchanges. With the least cost, and of that the fewest exchanges, every placement on the way is the cheapest of its size
(weighted matroid intersection: the rules of the partitions are one matroid, the loads of the brokers the other).

Cost: O(replicas * brokers^3 + replicas^2 * brokers), in plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence

from placement.reassignment.problem import Bounds, Problem

Cost = tuple[int, int, int, int]
Held = list[set[int]]
NO_COST: Cost = (0, 0, 0, 0)


def plus(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3]


def minus(one: Cost, other: Cost) -> Cost:
    return one[0] - other[0], one[1] - other[1], one[2] - other[2], one[3]


def cost(problem: Problem, row: int, broker: int) -> Cost:
    """What it costs that a broker holds a partition: nothing, less for the leader, one new replica for a stranger."""
    return 0, int(broker not in problem.before[row]), -int(broker == problem.leader[row]), 1


def allowed(problem: Problem, row: int, held: set[int], broker: int) -> bool:
    """Whether a partition may be held by `broker` besides `held`, so that its rules can still be met in the end."""
    if broker in held or problem.group[broker] < 0:
        return False
    if not problem.receives[broker] and broker not in problem.before[row]:
        return False
    kind = problem.kind[row]
    groups = [int(problem.group[each]) for each in (*held, broker)]
    if groups.count(groups[-1]) > problem.room[kind, groups[-1]]:
        return False
    awaited = sum(bool(must) and group not in groups for group, must in enumerate(problem.must[kind]))
    return len(groups) + awaited <= problem.factor[kind]


def placed(problem: Problem, bounds: Bounds) -> tuple[int, int] | None:
    """The least (new replicas, lost leaders) of a placement within bounds of one block; None if there is none."""
    rows = [row for row in range(problem.kind.size) if problem.kind[row] >= 0]
    held: Held = [set() for _ in range(problem.kind.size)]
    load = problem.base.tolist()
    for _ in range(sum(int(problem.factor[problem.kind[row]]) for row in rows)):
        if not _place_one(problem, bounds, rows, held, load):
            return None
    live = [broker for broker in range(problem.group.size) if problem.group[broker] >= 0]
    if not all(bounds.low[broker] <= load[broker] <= bounds.high[broker] for broker in live):
        return None
    new = sum(broker not in problem.before[row] for row in rows for broker in held[row])
    led = [(row, int(problem.leader[row])) for row in rows]
    lost = sum(leader >= 0 and problem.group[leader] >= 0 and leader not in held[row] for row, leader in led)
    return new, lost


def _place_one(problem: Problem, bounds: Bounds, rows: Sequence[int], held: Held, load: list[int]) -> bool:
    """Place one replica more along a cheapest path; return whether there was one."""
    brokers = range(problem.group.size)
    # The way to each broker: its cost, the broker before it (-1 at the start) and the partition that is exchanged.
    way: dict[int, tuple[Cost, int, int]] = {}
    for row in rows:
        if len(held[row]) < problem.factor[problem.kind[row]]:
            for broker in brokers:
                found = (cost(problem, row, broker), -1, row)
                if allowed(problem, row, held[row], broker) and (broker not in way or found < way[broker]):
                    way[broker] = found
    arcs = _arcs(problem, rows, held)
    for _ in brokers:
        changed = False
        for (one, other), (spent, row) in arcs.items():
            if one in way:
                there = plus(way[one][0], spent)
                if other not in way or there < way[other][0]:
                    way[other] = (there, one, row)
                    changed = True
        if not changed:
            break
    assert not changed, "a placement that is not the cheapest has a circle that gains"
    ends = [broker for broker in way if load[broker] < bounds.high[broker]]
    if not ends:
        return False
    below = {broker: (-int(load[broker] < bounds.low[broker]), 0, 0, 0) for broker in ends}
    end = min(ends, key=lambda broker: (plus(way[broker][0], below[broker]), broker))
    load[end] += 1
    while end >= 0:
        _, before, row = way[end]
        held[row].add(end)
        if before >= 0:
            held[row].discard(before)
        end = before
    return True


def _arcs(problem: Problem, rows: Sequence[int], held: Held) -> dict[tuple[int, int], tuple[Cost, int]]:
    """The cheapest partition that one broker can hand to another, and what that costs."""
    arcs: dict[tuple[int, int], tuple[Cost, int]] = {}
    for row in rows:
        for one in sorted(held[row]):
            for other in range(problem.group.size):
                if allowed(problem, row, held[row] - {one}, other) and other not in held[row]:
                    found = (minus(cost(problem, row, other), cost(problem, row, one)), row)
                    arcs[one, other] = min(found, arcs.get((one, other), found))
    return arcs
