"""The least moves to the most even loads, by trying every placement: slow, with nothing of the product's solver."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from placement.planning.exchange import Problem


def choices(problem: Problem, row: int) -> list[tuple[int, ...]]:
    """Every set of brokers that may hold a partition."""
    kind = int(problem.kind[row])
    if kind < 0:
        return [()]
    before = set(problem.before[row].tolist())
    usable = [b for b in range(problem.group.size) if problem.group[b] >= 0 and (problem.receives[b] or b in before)]
    found = []
    for chosen in itertools.combinations(usable, int(problem.factor[kind])):
        counts = [sum(problem.group[b] == g for b in chosen) for g in range(problem.room.shape[1])]
        if all(problem.must[kind, g] <= n <= problem.room[kind, g] for g, n in enumerate(counts)):
            found.append(chosen)
    return found


def cost(problem: Problem, row: int, chosen: Sequence[int]) -> tuple[int, int]:
    """New replicas, and 1 if the former leader is not among them."""
    before = set(problem.before[row].tolist())
    leader = int(problem.leader[row])
    lost = leader >= 0 and problem.kind[row] >= 0 and problem.group[leader] >= 0 and leader not in chosen
    return sum(b not in before for b in chosen), int(lost)


def all_costs(problem: Problem) -> dict[tuple[int, ...], tuple[int, int]]:
    """The least cost of every vector of loads that can be reached; empty if there is none."""
    start = tuple(int(n) if g >= 0 else 0 for n, g in zip(problem.base, problem.group, strict=True))
    states = {(start, ()): (0, 0)}
    topics = int(problem.topic.max(initial=0)) + 1
    per_topic = problem.topic_low is not None
    for topic in range(topics if per_topic else 1):
        rows = [r for r in range(problem.kind.size) if not per_topic or problem.topic[r] == topic]
        states = {(load, (0,) * len(start)): spent for (load, _), spent in states.items()}
        for row in rows:
            after: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, int]] = {}
            options = [(chosen, cost(problem, row, chosen)) for chosen in choices(problem, row)]
            for (load, part), (moves, lost) in states.items():
                for chosen, (new, gone) in options:
                    raised = tuple(n + (b in chosen) for b, n in enumerate(load))
                    inside = tuple(n + (b in chosen) for b, n in enumerate(part)) if per_topic else part
                    spent = (moves + new, lost + gone)
                    after[raised, inside] = min(spent, after.get((raised, inside), spent))
            states = after
        if problem.topic_low is not None and problem.topic_high is not None:
            kept: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, int]] = {}
            for (load, part), spent in states.items():
                low, high = problem.topic_low[topic], problem.topic_high[topic]
                if all(low[b] <= n <= high[b] for b, n in enumerate(part)):
                    kept[load, ()] = min(spent, kept.get((load, ()), spent))
            states = kept
    best: dict[tuple[int, ...], tuple[int, int]] = {}
    for (load, _), spent in states.items():
        best[load] = min(spent, best.get(load, spent))
    return best


def least(problem: Problem) -> tuple[list[int], tuple[int, int]]:
    """The most even loads of live brokers, ascending, and the least (new replicas, lost leaders) among all such."""
    found = all_costs(problem)
    live = [b for b in range(problem.group.size) if problem.group[b] >= 0]

    def squares(load: tuple[int, ...]) -> int:
        return sum(load[b] ** 2 for b in live)

    best = min(map(squares, found))
    even = [load for load in found if squares(load) == best]
    for load in even:
        assert sorted(load[b] for b in live) == sorted(even[0][b] for b in live)
    return sorted(even[0][b] for b in live), min(found[load] for load in even)
